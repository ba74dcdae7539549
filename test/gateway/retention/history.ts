/** A random history of a workspace, and what it was at each of its moments: what no prune may change. */
import fc from "fast-check";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/lib/time.ts";
import type { CallOptions, ReadAnswer, TestCore } from "../../support/gateway-core.ts";

/** `file` and `content` are numbers of names and of contents. */
export type Step =
  | { readonly do: "write"; readonly file: number; readonly content: number }
  | { readonly do: "branch"; readonly file: number; readonly content: number }
  | { readonly do: "copy"; readonly file: number; readonly to: number }
  | { readonly do: "move"; readonly file: number; readonly to: number }
  | { readonly do: "refer"; readonly file: number; readonly to: number }
  | { readonly do: "copyFolder" }
  | { readonly do: "delete"; readonly file: number }
  | { readonly do: "restore"; readonly file: number }
  | { readonly do: "wait"; readonly milliseconds: number }
  | { readonly do: "prune" };

type Change = Exclude<Step, { readonly do: "prune" } | { readonly do: "wait" }>;

const FILES = 4;
const file = fc.nat(FILES - 1);
const content = fc.nat(5);
const wait = fc.oneof(fc.nat(2 * HOUR_MS), fc.nat(3 * DAY_MS), fc.nat(40 * DAY_MS));

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("write"), file, content }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("branch"), file, content }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("wait"), milliseconds: wait }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("copy"), file, to: file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("move"), file, to: file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("refer"), file, to: file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("copyFolder") }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete"), file }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restore"), file }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("prune") }) },
) satisfies fc.Arbitrary<Step>;
export const steps = fc.array(step, { minLength: 5, maxLength: 60, size: "max" });

/** Some are rows, some blobs. */
export const contentOf = (number: number): string => `${number}`.repeat(number % 2 === 0 ? 100 : 40_000);

interface Written {
  readonly time: number;
  readonly content: string;
}

export interface FileHistory {
  readonly id: string;
  /** By branch, the oldest first. */
  readonly branches: Map<string, Written[]>;
  /** When it came, went, came again, the oldest first. */
  readonly turns: number[];
}

export interface Moment {
  readonly time: number;
  readonly tree: unknown;
}

/** Applies steps to a core and writes down what was so. */
export class History {
  readonly files = new Map<string, FileHistory>();
  readonly moments: Moment[] = [];
  readonly core: TestCore;
  folders = 0;

  constructor(core: TestCore) {
    this.core = core;
  }

  get now(): number {
    return this.core.clock.wallClock();
  }

  call(method: string, path: string, options: CallOptions = {}): Promise<ReadAnswer> {
    // The one of the core ends while weeks go by.
    return this.core.call(method, path, { token: this.core.token(), ...options });
  }

  /** Carries it out where the tree allows it. */
  async apply(step: Exclude<Step, { do: "prune" }>): Promise<void> {
    if (step.do === "wait") this.core.clock.jump(step.milliseconds);
    else {
      this.core.clock.jump(1 + (this.files.size % 3) * 7 * MINUTE_MS);
      await this.change(step);
    }
    const tree = (await this.call("GET", "/v1/nodes", { query: { path: "/", recursive: "true", pageSize: "1000" } }))
      .json.items;
    this.moments.push({ time: this.now, tree });
    this.core.clock.jump(1);
  }

  private async change(step: Change): Promise<void> {
    if (step.do === "copyFolder") {
      this.folders += 1;
      const source = (await this.call("GET", "/v1/files/d")).json.id;
      if (source === undefined) return;
      const made = await this.call("POST", "/v1/nodes", {
        json: { parentId: this.core.workspace.root, name: `copy ${this.folders}`, copyOf: source },
      });
      if (made.status !== 201) throw new Error(`copy: ${made.bytes}`);
      const { items } = (await this.call("GET", "/v1/nodes", { query: { parentId: made.json.id } })).json;
      for (const { id } of items) this.begin(id, (await this.call("GET", `/v1/nodes/${id}/content`)).bytes.toString());
      return;
    }
    const path = `/v1/files/d/${step.file}`;
    if (step.do === "write" || step.do === "branch") {
      const content = contentOf(step.content);
      const branch = step.do === "branch" ? "other" : "main";
      const metadata = branch === "main" ? {} : { branch };
      const answer = await this.core.upload(path, content, { metadata, token: this.core.token() });
      if (answer.status >= 300) throw new Error(`write: ${answer.bytes}`);
      const known = this.files.get(answer.json.id);
      if (known === undefined) {
        this.begin(answer.json.id, branch === "main" ? content : "");
        if (branch !== "main") this.write(answer.json.id, branch, content);
      } else this.write(known.id, branch, content);
      return;
    }
    if (step.do === "restore") {
      const gone = [...this.files.values()].filter(({ turns }) => turns.length % 2 === 0)[step.file];
      if (gone === undefined) return;
      const answer = await this.call("POST", `/v1/nodes/${gone.id}/restore`);
      if (answer.status === 200) gone.turns.push(this.now);
      else if (answer.status !== 409 && answer.status !== 410) throw new Error(`restore: ${answer.bytes}`);
      return;
    }
    const node = (await this.call("GET", path)).json;
    const known = this.files.get(node.id);
    if (known === undefined) return;
    if (step.do === "delete") {
      await this.call("DELETE", `/v1/nodes/${known.id}`);
      known.turns.push(this.now);
    } else if (step.do === "move") {
      const answer = await this.call("PATCH", `/v1/nodes/${known.id}`, { json: { name: `${step.to}` } });
      if (answer.status !== 200 && answer.status !== 409) throw new Error(`move: ${answer.bytes}`);
    } else if (step.do === "copy") {
      const json = { parentId: node.parentId, name: `${step.to}`, copyOf: known.id };
      const made = await this.call("POST", "/v1/nodes", { json });
      if (made.status === 201) this.begin(made.json.id, last(known, "main"));
      else if (made.status !== 409) throw new Error(`copy: ${made.bytes}`);
    } else {
      const { items } = (await this.call("GET", `/v1/nodes/${known.id}/versions`)).json;
      const version = items[step.to % items.length];
      const json = { copyOf: known.id, version: version?.id };
      const bytes = await this.call("GET", `/v1/nodes/${known.id}/content`, { query: { version: version?.id ?? "" } });
      const answer = await this.call("POST", `/v1/nodes/${known.id}/versions`, { json });
      if (answer.status !== 200) throw new Error(`version by reference: ${answer.bytes}`);
      this.write(known.id, "main", bytes.bytes.toString());
    }
  }

  private begin(id: string, content: string): void {
    this.files.set(id, { id, branches: new Map([["main", [{ time: this.now, content }]]]), turns: [this.now] });
  }

  private write(id: string, branch: string, content: string): void {
    const branches = this.files.get(id)?.branches;
    const written = branches?.get(branch);
    if (written === undefined) branches?.set(branch, [{ time: this.now, content }]);
    else written.push({ time: this.now, content });
  }
}

const last = ({ branches }: FileHistory, branch: string) => branches.get(branch)?.at(-1)?.content ?? "";

/** What a file held at a moment; undefined: it was not there. */
export function heldAt({ branches, turns }: FileHistory, branch: string, time: number): string | undefined {
  if (turns.filter((turn) => turn <= time).length % 2 === 0) return undefined;
  const own = branches.get(branch)?.findLast((written) => written.time <= time);
  return (own ?? branches.get("main")?.findLast((written) => written.time <= time))?.content;
}

export const isThere = ({ turns }: FileHistory): boolean => turns.length % 2 === 1;
