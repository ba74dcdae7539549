/**
 * A mount and the model side by side: every call goes to both, and both must answer the same. A call that a crash
 * interrupted is done or not done; a look at the mount decides which. Where the network hides contents, a look may not
 * decide: then the mount goes on beside a model of each outcome until an answer or a look fits only one.
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
  /** Compares all there is to see. */
  compare(withContent: boolean): Promise<void>;
}

type Argument = string | number | object;
type AnyCall = (...args: Argument[]) => Promise<unknown>;
interface Call {
  readonly name: CallName;
  readonly args: Argument[];
}
interface Outcome {
  readonly value?: unknown;
  readonly code?: string;
}

/** A plain tree that the mount may be; `descriptors`: the mount's to its own. */
interface Candidate {
  readonly model: Model;
  readonly descriptors: Map<number, number>;
}

const SIDES = ["the mount", "the model"] as const;

/** `mayFail`: the network is such that what is not here may be refused. */
export function createPaired(first: Calls, start: Model, mayFail: () => boolean): Paired {
  let mounted = first;
  let candidates: readonly Candidate[] = [{ model: start, descriptors: new Map() }];
  let cutOff: Call | undefined;

  const bind = (calls: Calls, name: CallName): AnyCall => calls[name] as unknown as AnyCall;

  async function outcome(work: () => Promise<unknown>): Promise<Outcome> {
    try {
      return { value: await work() };
    } catch (error) {
      return { code: codeOf(error) };
    }
  }

  function onModel({ model, descriptors }: Candidate, name: CallName, args: Argument[]): Promise<unknown> {
    const isOfDescriptor = typeof args[0] === "number";
    const own = isOfDescriptor ? [descriptors.get(args[0] as number) ?? -1, ...args.slice(1)] : args;
    return bind(model, name)(...own);
  }

  /** Leaves those of them that nothing is the matter with. All are begun at once: a crash finds the same done in each. */
  async function narrow(
    among: readonly Candidate[],
    problemOf: (candidate: Candidate) => Promise<string | undefined>,
  ): Promise<void> {
    const problems = await Promise.all(among.map(problemOf));
    const fitting = among.filter((_, index) => problems[index] === undefined);
    if (fitting.length === 0) throw new Fault([...new Set(problems)].join(" -- or: "));
    candidates = fitting;
  }

  async function both(name: CallName, args: Argument[]): Promise<unknown> {
    cutOff = { name, args };
    const real = await outcome(() => bind(mounted, name)(...args));
    cutOff = undefined;
    if (NETWORK_CODES.has(real.code ?? "") && mayFail() && name !== "close") throw new CallError(real.code ?? "", name);
    await narrow(candidates, async (candidate) => {
      const wanted = await outcome(() => onModel(candidate, name, args));
      if (name === "open" && real.code === undefined && wanted.code === undefined) {
        candidate.descriptors.set(real.value as number, wanted.value as number);
      }
      return mismatch({ name, args }, real, wanted);
    });
    if (real.code !== undefined) throw new CallError(real.code, describeCall({ name, args }));
    return real.value;
  }

  const calls = new Proxy(first, {
    get:
      (_, name: CallName) =>
      (...args: Argument[]) =>
        both(name, args),
  });

  async function unlike(shown: Tree, { model }: Candidate, withContent: boolean): Promise<string | undefined> {
    const found = differences(shown, await treeOf(model, { withContent }), SIDES);
    return found.length === 0 ? undefined : found.join("; ");
  }

  /** What one may have become by an interrupted call. */
  function becoming(before: Candidate, { name, args }: Call): Promise<Candidate[]> {
    const become = async (done: Argument[]) => {
      const after = { ...before, model: before.model.copy() };
      await outcome(() => onModel(after, name, done));
      return after;
    };
    return Promise.all(asFarAs({ name, args }).map(become));
  }

  return {
    calls,
    async crashed(next) {
      mounted = next;
      const pending = cutOff;
      cutOff = undefined;
      const withContent = !mayFail();
      const shown = await treeOf(mounted, { withContent });
      const become = pending === undefined ? [] : await Promise.all(candidates.map((one) => becoming(one, pending)));
      await narrow([...candidates, ...become.flat()], async (candidate) => {
        const problem = await unlike(shown, candidate, withContent);
        return problem === undefined ? undefined : `after the crash: ${problem}`;
      });
      candidates = (await distinct(candidates)).map(({ model }) => ({ model, descriptors: new Map() }));
    },
    async compare(withContent) {
      const shown = await treeOf(mounted, { withContent });
      await narrow(candidates, (candidate) => unlike(shown, candidate, withContent));
    },
  };
}

/** Of those that look alike in all there is to see, the first. */
async function distinct(all: readonly Candidate[]): Promise<Candidate[]> {
  const found: { readonly candidate: Candidate; readonly tree: Tree }[] = [];
  for (const candidate of all) {
    const tree = await treeOf(candidate.model, { withContent: true });
    if (found.every((other) => differences(other.tree, tree, SIDES).length > 0)) found.push({ candidate, tree });
  }
  return found.map(({ candidate }) => candidate);
}

/** The call as a whole; of a long write, which the kernel hands on in pieces, also each beginning of it. */
function asFarAs({ name, args }: Call): Argument[][] {
  const data = args.at(-1);
  if (name !== "write" || !(data instanceof Uint8Array)) return [args];
  const pieces = Array.from({ length: Math.ceil(data.length / CHUNK) }, (_, index) => (index + 1) * CHUNK);
  return pieces.map((size) => [...args.slice(0, -1), data.subarray(0, size)]);
}

function describeCall({ name, args }: Call): string {
  return `${name}(${args.map((arg) => (arg instanceof Uint8Array ? `${arg.length} bytes` : JSON.stringify(arg))).join(", ")})`;
}

/** Undefined: both answered the same. */
function mismatch(call: Call, real: Outcome, wanted: Outcome): string | undefined {
  const { name } = call;
  if (real.code !== wanted.code) {
    return `${describeCall(call)} answers ${real.code ?? "success"}, a plain folder ${wanted.code ?? "success"}`;
  }
  // Numbers of descriptors and inodes are each side's own.
  if (wanted.code !== undefined || name === "open" || name === "stat" || name === "fstat") return undefined;
  const [a, b] = [real.value, wanted.value].map((value) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : JSON.stringify(value),
  );
  return a === b ? undefined : `${describeCall(call)} answers ${shorten(a)}, a plain folder ${shorten(b)}`;
}

function shorten(text: string | undefined): string {
  return text === undefined || text.length < 200 ? String(text) : `${text.slice(0, 100)}… (${text.length})`;
}
