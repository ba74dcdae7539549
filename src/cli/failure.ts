/** The failure of a command: one line for the user, and an exit code. */
import { OPERATIONS } from "../contract/operations.ts";
import { printable } from "./wording.ts";

export const EXIT = { ok: 0, failure: 1, usage: 2, notMounted: 3 } as const;

export class Failure extends Error {
  readonly exitCode: number;
  /** Another process has printed the message to our standard error already. */
  readonly shown: boolean;

  constructor(message: string, exitCode: number = EXIT.failure, options: { cause?: unknown; shown?: boolean } = {}) {
    super(message, options);
    this.name = "Failure";
    this.exitCode = exitCode;
    this.shown = options.shown === true;
  }
}

/** Errors with an exit code of their own keep it; a daemon's StartError is one too. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Error && "exitCode" in error && typeof error.exitCode === "number") return error.exitCode;
  return EXIT.failure;
}

/** Removes the operation that the client's messages begin with: users of the command line did not call it. */
export function withoutOperation(message: string): string {
  const [start, name = ""] = /^(\w+): /.exec(message) ?? [""];
  return Object.hasOwn(OPERATIONS, name) ? message.slice(start.length) : message;
}

/** The error's message on one line. */
export function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return printable(text.replace(/\s*\n\s*/g, " "));
}
