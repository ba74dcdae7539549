/**
 * A mount and the model side by side: every call goes to both, and both must answer the same. A
 * call that a crash cut off is done or not done; which of the two is found out by looking.
 */
import { CallError, type CallName, type Calls, codeOf, NETWORK_CODES } from "./calls.ts";
import { CHUNK } from "./kernel.ts";
import type { Model } from "./model.ts";
import { differences, type Tree, treeOf } from "./tree.ts";
import { Fault } from "./world.ts";

export interface Paired {
  readonly calls: Calls;
  /** The mount was started again after a crash: `calls` is it from now on. Says what does not fit. */
  crashed(mounted: Calls): Promise<void>;
  /** The plain tree it is held against. */
  model(): Calls;
  /** Compares all there is to see. */
  compare(withContent: boolean): Promise<void>;
}

type Argument = string | number | object;
type AnyCall = (...args: Argument[]) => Promise<unknown>;

/** `mayFail`: the network is such that what is not here may be refused. */
export function createPaired(first: Calls, start: Model, mayFail: () => boolean): Paired {
  let mounted = first;
  let model = start;
  let descriptors = new Map<number, number>();
  let cutOff: { name: CallName; args: Argument[] } | undefined;

  const bind = (calls: Calls, name: CallName): AnyCall => calls[name] as unknown as AnyCall;

  async function outcome(work: () => Promise<unknown>): Promise<{ value?: unknown; code?: string }> {
    try {
      return { value: await work() };
    } catch (error) {
      return { code: codeOf(error) };
    }
  }

  function onModel(to: Model, name: CallName, args: Argument[]): Promise<unknown> {
    const isOfDescriptor = typeof args[0] === "number";
    const own = isOfDescriptor ? [descriptors.get(args[0] as number) ?? -1, ...args.slice(1)] : args;
    return bind(to, name)(...own);
  }

  async function both(name: CallName, args: Argument[]): Promise<unknown> {
    cutOff = { name, args };
    const real = await outcome(() => bind(mounted, name)(...args));
    cutOff = undefined;
    if (NETWORK_CODES.has(real.code ?? "") && mayFail() && name !== "close") throw new CallError(real.code ?? "", name);
    const wanted = await outcome(() => onModel(model, name, args));
    const call = `${name}(${args.map((arg) => (arg instanceof Uint8Array ? `${arg.length} bytes` : JSON.stringify(arg))).join(", ")})`;
    if (real.code !== wanted.code) {
      throw new Fault(`${call} answers ${real.code ?? "success"}, a plain folder ${wanted.code ?? "success"}`);
    }
    if (wanted.code !== undefined) throw new CallError(wanted.code, call);
    if (name === "open") descriptors.set(real.value as number, wanted.value as number);
    else if (name !== "stat" && name !== "fstat") {
      const [a, b] = [real.value, wanted.value].map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : JSON.stringify(value),
      );
      if (a !== b) throw new Fault(`${call} answers ${shorten(a)}, a plain folder ${shorten(b)}`);
    }
    return real.value;
  }

  const calls = new Proxy(first, {
    get:
      (_, name: CallName) =>
      (...args: Argument[]) =>
        both(name, args),
  });

  async function seen(withContent: boolean): Promise<Tree> {
    return treeOf(mounted, { withContent });
  }

  return {
    calls,
    model: () => model,
    async crashed(next) {
      mounted = next;
      const pending = cutOff;
      cutOff = undefined;
      const shown = await seen(!mayFail());
      const candidates = [model];
      if (pending !== undefined) {
        for (const args of asFarAs(pending)) {
          const after = model.copy();
          await outcome(() => onModel(after, pending.name, args));
          candidates.push(after);
        }
      }
      const problems: string[] = [];
      for (const candidate of candidates) {
        const found = differences(shown, await treeOf(candidate, { withContent: !mayFail() }), [
          "the mount",
          "the model",
        ]);
        if (found.length === 0) {
          model = candidate;
          descriptors = new Map();
          return;
        }
        problems.push(found.join("; "));
      }
      throw new Fault(`after the crash: ${problems.join(" -- or: ")}`);
    },
    async compare(withContent) {
      const found = differences(await seen(withContent), await treeOf(model, { withContent }), [
        "the mount",
        "the model",
      ]);
      if (found.length > 0) throw new Fault(found.join("; "));
    },
  };
}

/** The call as a whole; of a long write, which the kernel hands on in pieces, also each beginning of it. */
function asFarAs({ name, args }: { readonly name: CallName; readonly args: Argument[] }): Argument[][] {
  const data = args.at(-1);
  if (name !== "write" || !(data instanceof Uint8Array)) return [args];
  const pieces = Array.from({ length: Math.ceil(data.length / CHUNK) }, (_, index) => (index + 1) * CHUNK);
  return pieces.map((size) => [...args.slice(0, -1), data.subarray(0, size)]);
}

function shorten(text: string | undefined): string {
  return text === undefined || text.length < 200 ? String(text) : `${text.slice(0, 100)}… (${text.length})`;
}
