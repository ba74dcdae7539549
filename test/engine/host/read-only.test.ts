/** Whether changes are refused to programs, by what the gateway says of the account's role. */
import { expect, test } from "vitest";
import { createReadOnly } from "../../../src/engine/host/index.ts";

const workspace = { id: "w", name: "w", rootId: "r" };

test("a gateway that tells of no roles is tried again by changes once it was asked for the workspace", () => {
  const changes: boolean[] = [];
  const readOnly = createReadOnly(workspace, {
    isAskedFor: false,
    lack: undefined,
    onChange: (is) => changes.push(is),
  });
  readOnly.refused({ workspace: "w", role: "editor" });
  expect(readOnly.why).toBe('changing files in workspace "w" takes the role editor');
  readOnly.shown(workspace);
  expect([readOnly.why, changes]).toEqual([undefined, [true, false]]);
});
