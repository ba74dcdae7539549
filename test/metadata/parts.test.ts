/** Transactions in parts: what one part that fails takes with it, and what is done of it when all of it runs twice. */
import { expect, test } from "vitest";
import { parseRequest } from "../../src/engine/core/index.ts";
import { openDatabase } from "../../src/metadata/database.ts";
import { createMetadata } from "../../src/metadata/metadata.ts";

const fail = () => {
  throw new Error("a mistake");
};

function three() {
  const metadata = createMetadata(openDatabase(":memory:"), parseRequest);
  const heard: string[] = [];
  const say = (what: string) => () => {
    metadata.settings.set("workspace", what);
    metadata.afterCommit(() => heard.push(what));
  };
  return { metadata, heard, say };
}

test("what comes after the commit comes once, and not of the part that failed", () => {
  const { metadata, heard, say } = three();
  metadata.transaction(() => {
    say("whole")();
    metadata.part(say("first"));
    metadata.part(() => {
      say("second")();
      fail();
    });
    metadata.part(say("third"));
  });
  expect(heard).toEqual(["whole", "first", "third"]);
});

test("nothing comes after a transaction that failed, nor with the next one", () => {
  const { metadata, heard, say } = three();
  expect(() =>
    metadata.transaction(() => {
      say("lost")();
      fail();
    }),
  ).toThrow("a mistake");
  metadata.transaction(say("next"));
  expect(heard).toEqual(["next"]);
});

test("a part that fails is undone alone, also where somebody in between catches everything", () => {
  const { metadata, heard, say } = three();
  metadata.transaction(() => {
    say("whole")();
    try {
      metadata.part(() => {
        say("half")();
        fail();
      });
    } catch {}
  });
  expect(metadata.settings.get("workspace")).toBe("whole");
  expect(heard).toEqual(["whole"]);
});
