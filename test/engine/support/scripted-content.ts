/** The content side of a gateway, scripted: versions as byte arrays, answers that wait, break off, lie or fail when told. */
import type { Client, Content, ContentOptions } from "../../../src/client/client.ts";
import { RemoteError, type RemoteErrorCode } from "../../../src/client/errors.ts";
import { ALL_FEATURES } from "../../../src/contract/features.ts";

export interface ContentCall {
  readonly nodeId: string;
  readonly version: string;
  readonly start: number;
  readonly end: number;
}

export interface ScriptedContent {
  readonly client: Client;
  readonly versions: Map<string, Uint8Array>;
  readonly calls: ContentCall[];
  /** Requests under way. */
  readonly running: number;
  /** Versions it names, whatever it has. */
  listed: string[];
  chunk: number;
  /** Answers the whole content whatever is asked. */
  ignoresRanges: boolean;
  /** The next requests fail so. */
  failures: RemoteErrorCode[];
  /** The next bodies break off after so many bytes; after all of them, too. */
  breaks: number[];
  /** The next bodies end, without an error, after so many bytes. */
  shorts: number[];
  /** The next bodies have a wrong first byte. */
  lies: number;
  /** While held, requests wait before their answer; `release` lets those that wait go on. */
  hold(): void;
  release(): void;
}

export function createScriptedContent(): ScriptedContent {
  const versions = new Map<string, Uint8Array>();
  const calls: ContentCall[] = [];
  let isHeld = false;
  let held: (() => void)[] = [];
  let running = 0;

  async function getContent(nodeId: string, options: ContentOptions = {}): Promise<Content> {
    const { version = "", range, signal } = options;
    const content = versions.get(version);
    calls.push({ nodeId, version, start: range?.start ?? 0, end: range?.end ?? Number.POSITIVE_INFINITY });
    running += 1;
    let isCounted = true;
    const done = () => {
      if (isCounted) running -= 1;
      isCounted = false;
    };
    try {
      while (isHeld) {
        await new Promise<void>((resolve, reject) => {
          held.push(resolve);
          signal?.addEventListener("abort", () => reject(new RemoteError("aborted", "given up")), { once: true });
        });
      }
      await undefined;
      if (signal?.aborted) throw new RemoteError("aborted", "given up");
      const failure = script.failures.shift();
      if (failure !== undefined) throw new RemoteError(failure, `told to fail: ${failure}`);
      if (content === undefined) throw new RemoteError("notFound", `no version ${version}`);
    } catch (error) {
      done();
      throw error;
    }
    const isRanged = range !== undefined && !script.ignoresRanges;
    const start = isRanged ? range.start : 0;
    const bytes = content.slice(start, isRanged ? range.end : content.length);
    if (script.lies > 0 && bytes.length > 0) {
      script.lies -= 1;
      bytes[0] = (bytes[0] ?? 0) ^ 0xff;
    }
    return { version, start, size: content.length, bytes: chunks(bytes, signal, done) };
  }

  async function* chunks(bytes: Uint8Array, signal: AbortSignal | undefined, done: () => void) {
    try {
      const broken = script.breaks.shift();
      const short = script.shorts.shift();
      for (let position = 0; position < bytes.length; position += script.chunk) {
        await undefined;
        if (signal?.aborted) throw new RemoteError("aborted", "given up");
        if (broken !== undefined && position >= broken) throw new RemoteError("offline", "broken off");
        if (short !== undefined && position >= short) return;
        yield bytes.slice(position, position + script.chunk);
      }
      if (broken === bytes.length) throw new RemoteError("offline", "broken off");
    } finally {
      done();
    }
  }

  async function listVersions() {
    const ids = [...script.listed, ...versions.keys()];
    return { items: ids.map((id) => ({ id })), next: null, totalCount: ids.length };
  }

  const unexpected = async () => {
    throw new Error("only content is scripted");
  };
  const script: ScriptedContent = {
    // Only what the byte flows ask for; anything else is a mistake of the test.
    client: new Proxy(
      { getContent, listVersions, features: ALL_FEATURES, gatewayTime: Date.now } as unknown as Client,
      {
        get: (target, name) => Reflect.get(target, name) ?? unexpected,
      },
    ),
    versions,
    calls,
    get running() {
      return running;
    },
    listed: [],
    chunk: 64 * 1024,
    ignoresRanges: false,
    failures: [],
    breaks: [],
    shorts: [],
    lies: 0,
    hold() {
      isHeld = true;
    },
    release() {
      isHeld = false;
      const all = held;
      held = [];
      for (const resolve of all) resolve();
    },
  };
  return script;
}
