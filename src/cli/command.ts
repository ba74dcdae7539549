/** An entry of the table of commands. */
import type { FlagName } from "./flags.ts";

export interface Command {
  /** A folder follows the command's words, or may. */
  readonly dir: "required" | "optional" | "none";
  /** Any number of paths after the folder. */
  readonly paths?: true;
  /** Names of words that must follow, in this order. */
  readonly positionals?: readonly string[];
  /** Names of words that may follow those. */
  readonly optional?: readonly string[];
  /** Name of the words after "--", of which there must be at least one. They are not flags of ours. */
  readonly rest?: string;
  readonly summary: string;
  /** More lines for scripts: the output of --json, the meaning of exit codes. */
  readonly notes?: readonly string[];
  readonly flags: readonly FlagName[];
  readonly required?: readonly FlagName[];
  /** Required values may come from an environment instead; the command checks that itself. */
  readonly orEnvironment?: true;
  readonly hidden?: readonly FlagName[];
  /** The command changes a thing that exists: a value that is not given stays, whatever defaults and variables say. */
  readonly changes?: true;
  readonly examples: readonly (readonly [string, string])[];
}
