/** An environment's entry in the configuration file: its keys and their values, by the table of flags. */
import { dirname, resolve } from "node:path";
import { EXIT, Failure } from "./failure.ts";
import { FLAGS, type Flag, type FlagName } from "./flags.ts";
import { flagName } from "./options.ts";
import { checkedValue } from "./resolve-values.ts";
import type * as values from "./values.ts";

export type FileFlag = {
  [F in FlagName]: (typeof FLAGS)[F] extends { file: true } ? F : never;
}[FlagName];

type FileValue<F> = F extends { type: "switch" } ? boolean : F extends { kind: values.Kind<infer T> } ? T : never;

/** By the flag's name. Absent where the entry says nothing. */
export type EntryValues = { readonly [F in FileFlag]?: FileValue<(typeof FLAGS)[F]> };

/** An entry as it stands in the file. */
export type Entry = Readonly<Record<string, string | number | boolean>>;

const isFileFlag = (name: FlagName): name is FileFlag => {
  const flag: Flag = FLAGS[name];
  return flag.file === true;
};
export const FILE_FLAGS = (Object.keys(FLAGS) as FlagName[]).filter(isFileFlag);

export const keyOf = (name: FileFlag): string =>
  flagName(name).replace(/-[a-z]/g, (found) => found.slice(1).toUpperCase());

/** Flags by the key that the file has for them. */
const BY_KEY: ReadonlyMap<string, FileFlag> = new Map(FILE_FLAGS.map((name) => [keyOf(name), name]));
const KEYS = [...BY_KEY.keys()].join(", ");

/** Takes the key as it is in the file, or the flag's name. Throws a Failure that lists the keys. */
export function flagOfKey(given: string): FileFlag {
  const found = BY_KEY.get(given) ?? FILE_FLAGS.find((name) => flagName(name) === given);
  if (found === undefined) throw new Failure(`expected one of the keys ${KEYS}, got "${given}"`, EXIT.usage);
  return found;
}

/** Throws a Failure that names the file and the key, what was expected and what came. */
export function readEntry(file: string, name: string, entry: Entry): EntryValues {
  const where = `${file}: environments.${name}`;
  const read = Object.entries(entry).map(([key, raw]): [FileFlag, unknown] => {
    const flag = BY_KEY.get(key);
    if (flag === undefined) throw new Failure(`${where}: expected one of the keys ${KEYS}, got "${key}"`, EXIT.usage);
    const value = checkedValue(FLAGS[flag], `${where}.${key}`, raw);
    return [flag, flag === "profile" ? resolve(dirname(file), String(value)) : value];
  });
  // Each value was checked by the flag that its type comes from.
  return Object.fromEntries(read) as EntryValues;
}

/** Turns the typed value of a key into its form in the file. Throws a Failure. */
export function entryValue(name: FileFlag, text: string): Entry[string] {
  const value = checkedValue(FLAGS[name], keyOf(name), text);
  return typeof value === "boolean" || value === Number(text) ? (value as boolean | number) : text;
}
