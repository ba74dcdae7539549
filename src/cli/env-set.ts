/** `wsfs env set|unset`: changes one key of an environment's entry in the configuration file. */
import { checkMove } from "./env.ts";
import { type Entry, entryValue, flagOfKey, keyOf } from "./environment-entry.ts";
import { changeConfiguration, checkKnown } from "./environments.ts";
import { EXIT } from "./failure.ts";
import type { Values } from "./options.ts";
import { absolute } from "./working-folder.ts";

export async function envSet(values: Values<"env set">): Promise<number> {
  const { NAME, KEY, VALUE } = values.positionals;
  const flag = flagOfKey(KEY);
  const value = entryValue(flag, flag === "profile" ? absolute(VALUE) : VALUE);
  return change(NAME, (entry) => ({ ...entry, [keyOf(flag)]: value }));
}

export async function envUnset(values: Values<"env unset">): Promise<number> {
  const { NAME, KEY } = values.positionals;
  const key = keyOf(flagOfKey(KEY));
  return change(NAME, ({ [key]: _, ...others }) => others);
}

async function change(name: string, changed: (entry: Entry) => Entry): Promise<number> {
  await changeConfiguration((known) => {
    checkKnown(name, known, true);
    const before = known.environments[name] ?? {};
    const entry = changed(before);
    checkMove(name, before, entry.baseUrl === undefined ? undefined : String(entry.baseUrl));
    return { ...known, environments: { ...known.environments, [name]: entry } };
  });
  return EXIT.ok;
}
