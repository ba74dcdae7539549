/** docs/user/settings.md is what the tables of flags and commands give (`npm run docs` writes it). */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { configurationPage } from "./support/configuration-page.ts";

const PAGE = fileURLToPath(new URL("../../docs/user/settings.md", import.meta.url));

test("the page is made of the tables", () => {
  const made = configurationPage();
  if (process.env.WSFS_WRITE_TABLES === "1") writeFileSync(PAGE, made);
  expect(readFileSync(PAGE, "utf8")).toBe(made);
});
