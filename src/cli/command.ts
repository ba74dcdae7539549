/** What the table of commands says of each. */
import type { FlagName } from "./flags.ts";

export interface Command {
  /** What follows the command's words: one folder. */
  readonly dir: "required" | "optional" | "none";
  /** Any number of paths after the folder. */
  readonly paths?: true;
  /** Words that have to follow, in this order, by what they stand for. */
  readonly positionals?: readonly string[];
  /** Words that may follow those. */
  readonly optional?: readonly string[];
  /** Words after "--", at least one, by what they stand for: they are no flags of ours. */
  readonly rest?: string;
  readonly summary: string;
  /** What a script has to know besides: what is printed with --json, what exit codes mean. */
  readonly notes?: readonly string[];
  readonly flags: readonly FlagName[];
  readonly required?: readonly FlagName[];
  /** What is required may be of an environment instead: the command asks for it itself. */
  readonly orEnvironment?: true;
  readonly hidden?: readonly FlagName[];
  /** Of what is already there: what is not given stays, whatever defaults and variables say. */
  readonly changes?: true;
  readonly examples: readonly (readonly [string, string])[];
}
