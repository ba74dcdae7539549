/** An entry of the table of commands. */
import type { FlagName } from "./flags.ts";

export interface Command {
  /** Whether a folder follows the command's words. */
  readonly dir: "required" | "optional" | "none";
  /** Any number of paths after the folder. */
  readonly paths?: true;
  /** Names of words that must follow, in this order. */
  readonly positionals?: readonly string[];
  /** Names of words that may follow those. */
  readonly optional?: readonly string[];
  /** Name of the words after "--". There must be at least one. They are not parsed as flags. */
  readonly rest?: string;
  readonly summary: string;
  /** More lines for scripts: the output of --json, the meaning of exit codes. */
  readonly notes?: readonly string[];
  readonly flags: readonly FlagName[];
  readonly required?: readonly FlagName[];
  /** Required values may come from an environment of the configuration instead; the command checks that itself. */
  readonly orEnvironment?: true;
  readonly hidden?: readonly FlagName[];
  /** The command changes something that exists: a value that is not given stays, without defaults and variables. */
  readonly changes?: true;
  readonly examples: readonly (readonly [string, string])[];
}
