/** Every behaviour case, by group and name. */
import { attributeCases } from "./attributes.ts";
import type { Cases } from "./case.ts";
import { contentCases } from "./contents.ts";
import { folderCases } from "./folders.ts";
import { linkCases } from "./links.ts";
import { nameCases } from "./names.ts";
import { refusalCases } from "./refusals.ts";
import { removalCases } from "./removals.ts";
import { renameCases } from "./renames.ts";
import { togetherCases } from "./together.ts";

export const CASES = {
  names: nameCases,
  contents: contentCases,
  rename: renameCases,
  removing: removalCases,
  folders: folderCases,
  links: linkCases,
  attributes: attributeCases,
  refusals: refusalCases,
  together: togetherCases,
} as const satisfies Record<string, Cases>;
