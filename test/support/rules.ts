/**
 * The rules src/README.md promises, as functions of all files' text. Each returns its violations,
 * one line each; an empty list means it holds.
 */
import { posix } from "node:path";
import { circles, codeOf, importsOf } from "./imports.ts";

/** Path from the project's folder, with "/", to text. */
export type Project = ReadonlyMap<string, string>;

/** Which folders of src/ a folder may import from, besides itself. The three drawers never see each other. */
const MAY_IMPORT: ReadonlyMap<string, readonly string[]> = new Map([
  ["lib", []],
  ["contract", ["lib"]],
  ["metadata", ["contract", "lib"]],
  ["content", ["contract", "lib"]],
  ["client", ["contract", "lib"]],
  ["gateway", ["contract", "lib"]],
  ["engine", ["metadata", "content", "client", "contract", "lib"]],
  ["fuse", ["engine", "lib"]],
  ["fuse-native", ["fuse", "engine", "lib"]],
  ["daemon", ["fuse-native", "fuse", "engine", "metadata", "content", "client", "contract", "lib"]],
  ["cli", ["daemon", "gateway", "client", "contract", "lib"]],
]);

/**
 * The rooms of engine/, from the bottom up. A room imports from those before it, and by their door (index.ts) alone. The rest
 * of src/ sees two doors: what may be asked of the engine, and how it is started.
 */
const ROOMS = ["api", "host", "core", "files", "tree", "sync", "remote", "upload", "ops", "history", "start"];
const SEEN_FROM_OUTSIDE = ["api", "start"];

/** Packages that only some folders may import. */
const OWNERS: readonly { package: RegExp; folders: readonly string[] }[] = [
  { package: /^undici(\/|$)/, folders: ["client"] },
  { package: /^(fastify|@fastify\/.*)$/, folders: ["gateway"] },
  { package: /^yargs$/, folders: ["cli"] },
  { package: /^@napi-rs\/keyring$/, folders: ["client"] },
];

const SQLITE = /^src\/lib\/sqlite\//;
const SQLITE_DOOR = "src/lib/sqlite/index.ts";
const SQLITE_USERS = ["metadata", "gateway"];
const ADDON = "src/lib/addon.ts";
const ADDON_USERS = ["src/fuse/native.ts", "src/content/system-calls.ts", "src/lib/core-file.ts"];
const LIBRARY = /^fuse-native(?:\/|$)/;
const LIBRARY_DOOR = "src/fuse-native/library.ts";
const FILE_ACCESS = [
  "src/content/disk-files.ts",
  "src/content/state-disk.ts",
  "src/content/state-lock.ts",
  "src/content/system-calls.ts",
];
const FROM_THE_RUNTIME =
  /\b(?:Date\.now|Math\.random|process\.env|process\.hrtime|performance\.now|randomUUID|setTimeout|setInterval|setImmediate)\b|\bnew Date\(\s*\)|(?<!new )\bDate\(/;
const ASYNCHRONOUS = /\b(?:async|await|Promise|setTimeout|setInterval|setImmediate|queueMicrotask)\b/;
const ANY = /(?<![.\w$])any\b(?!\s*\()(?!\s*:)/;
const UNCHECKED = /@ts-(?:ignore|nocheck)/;
const BARE_LIMIT = /\b(?:LIMIT|OFFSET) [?:@]\w*/;
const DURATION = /^(export )?const (\w+_(?:MS|SECONDS)) =/gm;
/** Of so many lines a file is long, and needs a reason. */
const LINES = 600;
/** The long files, and why each is one idea. */
const LONG_FILES: ReadonlyMap<string, string> = new Map([
  [
    "test/sim/in-doubt.test.ts",
    "Each kind of request loses its answer in the same ways, and the cases of one kind are read beside those of another.",
  ],
  [
    "test/sim/links.test.ts",
    "All tests hold one promise, that the nodes of a linked file are one file on every mount.",
  ],
  [
    "test/sim/open-files.test.ts",
    "What a drain, a close and a remote change do to a file depends on the same thing, that a program has it open.",
  ],
  [
    "test/sim/refusals.test.ts",
    "Whatever a request is refused for, the same queue waits, reports it and tries again, by the same rules.",
  ],
  [
    "test/sim/rollback.test.ts",
    "Older data of the gateway and older rows of a mount are the two sides of one comparison.",
  ],
  [
    "test/sim/scheduling.test.ts",
    "When a file is sent and what is sent for it are decisions of one loop, the write-back loop.",
  ],
]);
const MACHINE_PATH = /(?<![\w.~\-@$*})\]])\/(?:work|root)\b(?![-.\w])/;

function folderOf(path: string): string {
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? "";
}

/** The room of a file of the engine; undefined: it is in none that there may be. */
function roomOf(path: string): string | undefined {
  const room = /^src\/engine\/([^/]+)\/[^/]+$/.exec(path)?.[1];
  return room !== undefined && ROOMS.includes(room) ? room : undefined;
}

const isDoor = (path: string) => /^src\/engine\/[^/]+\/index\.ts$/.test(path);

function mayEnter(from: string, to: string): boolean {
  const [here, there] = [roomOf(from), roomOf(to)];
  if (here === undefined || there === undefined) return false;
  return here === there ? !isDoor(to) : isDoor(to) && ROOMS.indexOf(there) < ROOMS.indexOf(here);
}

/** The room that a test is of: it may import what is in there. */
const roomOfTest = (path: string) => /^test\/engine\/([^/]+)\//.exec(path)?.[1];

/** What a file exports of others. */
const HANDED_ON = /^export\s+(?:type\s+)?(?:\*[^"]*|\{[^}]*\}\s*from\s*)"([^"]+)"/gm;

const isSeenFromOutside = (path: string) => isDoor(path) && SEEN_FROM_OUTSIDE.includes(roomOf(path) ?? "");

function sources(project: Project, ...folders: string[]): [string, string][] {
  return [...project].filter(
    ([path]) => /^src\/.*\.ts$/.test(path) && (folders.length === 0 || folders.includes(folderOf(path))),
  );
}

function resolved(from: string, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(from), specifier) : undefined;
}

/** One violation for each line of the text that matches. */
function matches(path: string, text: string, pattern: RegExp): string[] {
  return text.split("\n").flatMap((line, index) => {
    const found = pattern.exec(line);
    return found === null ? [] : [`${path}:${index + 1} has ${found[0].trim()}`];
  });
}

function importViolations(project: Project, allowed: (path: string, specifier: string) => boolean): string[] {
  return sources(project).flatMap(([path, text]) =>
    importsOf(text)
      .filter((specifier) => !allowed(path, specifier))
      .map((specifier) => `${path} imports ${specifier}`),
  );
}

/** Long files without a reason, and reasons without a long file. `reasons`: by path. */
export function longFileViolations(project: Project, reasons: ReadonlyMap<string, string>): string[] {
  const long = [...project]
    .filter(([path]) => /^(?:src|native|scripts|test)\/.*\.(?:ts|mjs|c|h|gyp)$/.test(path))
    .filter(([, text]) => text.replace(/\n$/, "").split("\n").length >= LINES)
    .map(([path]) => path);
  return [
    ...long.filter((path) => !reasons.has(path)).map((path) => `${path} is long, without a reason in LONG_FILES`),
    ...[...reasons.keys()]
      .filter((path) => !long.includes(path))
      .map((path) => `${path} is in LONG_FILES, and is not long or not there`),
  ];
}

/** A hook that is registered when the module is loaded. */
const HOOK = /^(?:before|after)(?:Each|All)\(/;

export const RULES = {
  "imports go down": (project) =>
    importViolations(project, (path, specifier) => {
      const target = resolved(path, specifier);
      if (target === undefined) return true;
      const [from, to] = [folderOf(path), folderOf(target)];
      const below = MAY_IMPORT.get(from);
      if (below === undefined || !target.endsWith(".ts")) return false;
      if (from === to) return from !== "engine" || mayEnter(path, target);
      return below.includes(to) && (to !== "engine" || isSeenFromOutside(target));
    }),

  "tests go through doors": (project) => {
    const isInside = (target: string | undefined) => target?.startsWith("src/engine/") === true && !isDoor(target);
    return [...project]
      .filter(([path]) => /^test\/.*\.(?:ts|mjs)$/.test(path))
      .flatMap(([path, text]) => {
        const room = roomOfTest(path);
        const isOfRoom = (specifier: string) => room !== undefined && roomOf(resolved(path, specifier) ?? "") === room;
        const handedOn = [...text.matchAll(HANDED_ON)].map(([, specifier = ""]) => specifier);
        return [
          ...importsOf(text).filter((one) => isInside(resolved(path, one)) && !isOfRoom(one)),
          ...handedOn.filter((one) => isInside(resolved(path, one)) && isOfRoom(one)),
        ].map((specifier) => `${path} imports ${specifier}`);
      });
  },

  // Files of a kind share a process, and a module is loaded once for all of them: its hooks would be those of the first.
  "hooks are the test files' own": (project) =>
    [...project]
      .filter(([path]) => /^test\/.*\.ts$/.test(path) && !path.endsWith(".test.ts"))
      .flatMap(([path, text]) => matches(path, codeOf(text), HOOK)),

  "no imports in a circle": (project) => {
    const graph = sources(project).map(([path, text]): [string, string[]] => [
      path,
      importsOf(text).flatMap((specifier) => resolved(path, specifier) ?? []),
    ]);
    return circles(new Map(graph)).map((circle) => circle.join(" -> "));
  },

  "packages have owners": (project) =>
    importViolations(project, (path, specifier) =>
      OWNERS.every((owner) => !owner.package.test(specifier) || owner.folders.includes(folderOf(path))),
    ),

  "SQLite has one door and two users": (project) =>
    importViolations(project, (path, specifier) => {
      if (SQLITE.test(path)) return true;
      const target = resolved(path, specifier) ?? "";
      const isUser = target === SQLITE_DOOR && SQLITE_USERS.includes(folderOf(path));
      return SQLITE.test(target) ? isUser : !/^(better-sqlite3|node:sqlite|kysely)$/.test(specifier);
    }),

  "the addon has one door and three users": (project) => [
    ...importViolations(
      project,
      (path, specifier) => resolved(path, specifier) !== ADDON || ADDON_USERS.includes(path),
    ),
    ...sources(project).flatMap(([path, text]) =>
      path === ADDON ? [] : matches(path, text, /\bdlopen\b|\w\.node["']/),
    ),
  ],

  "the optional library has one door, and is loaded when it is asked for": (project) => [
    ...importViolations(project, (path, specifier) => !LIBRARY.test(specifier) || path === LIBRARY_DOOR),
    ...matches(LIBRARY_DOOR, project.get(LIBRARY_DOOR) ?? "", /^(?:import|export) (?!type\b).*"fuse-native"/),
  ],

  "metadata is synchronous": (project) =>
    sources(project, "metadata").flatMap(([path, text]) => matches(path, codeOf(text), ASYNCHRONOUS)),

  "clock, timers, chance, environment and files come from outside": (project) =>
    sources(project, "engine", "metadata", "content", "contract").flatMap(([path, text]) => [
      ...matches(path, codeOf(text), FROM_THE_RUNTIME),
      ...importsOf(text)
        .filter((specifier) => /^(?:node:)?(?:fs(?:\/promises)?|timers(?:\/promises)?)$/.test(specifier))
        .filter((specifier) => !(specifier.includes("fs") && FILE_ACCESS.includes(path)))
        .map((specifier) => `${path} imports ${specifier}`),
    ]),

  // SQLite looks at the value of a bare one, and prepares the statement again each time it is bound.
  "limits of queries are numbers or expressions": (project) =>
    sources(project).flatMap(([path, text]) => matches(path, text, BARE_LIMIT)),

  "a long file has a reason": (project) => longFileViolations(project, LONG_FILES),

  "an exported duration has a name of its own": (project) => {
    const all = sources(project).flatMap(([path, text]) =>
      [...text.matchAll(DURATION)].map(([, exported, name = ""]) => ({
        path,
        name,
        isExported: exported !== undefined,
      })),
    );
    const exported = all.filter(({ isExported }) => isExported);
    return exported.flatMap((one) =>
      all.filter((other) => other !== one && other.name === one.name).map(({ path }) => `${path} has ${one.name} too`),
    );
  },

  "types are checked": (project) =>
    [...project]
      .filter(([path]) => path.endsWith(".ts"))
      .flatMap(([path, text]) => [...matches(path, codeOf(text), ANY), ...matches(path, text, UNCHECKED)]),

  "every source file says first what it is": (project) =>
    sources(project)
      .filter(([, text]) => !/^(?:#!.*\n)?\s*\/[/*]/.test(text))
      .map(([path]) => `${path} has no header`),

  "src/README.md names every folder": (project) => {
    const map = project.get("src/README.md") ?? "";
    const folders = new Set([...MAY_IMPORT.keys(), ...sources(project).map(([path]) => folderOf(path))]);
    return [...folders].filter((folder) => !map.includes(`${folder}/`)).map((folder) => `${folder}/ is not named`);
  },

  "no path of somebody's machine": (project) =>
    [...project].flatMap(([path, text]) => matches(path, text, MACHINE_PATH)),
} satisfies Record<string, (project: Project) => string[]>;
