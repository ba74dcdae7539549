/**
 * Requests in doubt: the creation of a file or folder ("birth") was sent, and its answer is lost, late or a refusal.
 * The node it may have made is recognised as this mount's own: it is not doubled, and nobody else's is taken for it.
 */
import { describe, expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import { HEARD_MS, isCreation, savedAndRenamed } from "./support/lost-creation.ts";
import { begin } from "./support/one-world.ts";
import { bytesOf, sourceOf } from "./support/programs.ts";

describe("somebody else changes the new node before this mount hears of it", () => {
  test("a new file that somebody moves and writes is shown once", async () => {
    const it = await begin();
    const { outside, clock } = it.world;
    const node = await savedAndRenamed(it);
    await it.world.run(outside.writeContent(node, sourceOf("theirs")));
    for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
      await clock.advance(HEARD_MS);
      expect(["a", "e"]).toEqual(expect.arrayContaining(await it.names()));
      expect((await it.names()).length).toBe(1);
    }
    await it.ends(["e"]);
    expect(await it.content("e")).toBe("theirs");
  });

  test("a new folder that somebody moves and fills is shown once", async () => {
    const it = await begin();
    const { outside, workspace, clock } = it.world;
    await it.drain();
    const birth = it.once("silent-after", isCreation);
    await it.world.run(it.calls().mkdir("d"));
    await it.save("d/own");
    await it.until(birth.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.patchNode(node?.id ?? "", { name: "e" }));
    await it.world.run(outside.upload(node?.id ?? "", "x", sourceOf("theirs")));
    for (let waited = 0; waited < 30_000; waited += HEARD_MS) {
      await clock.advance(HEARD_MS);
      expect((await it.names()).length).toBe(1);
    }
    await it.ends(["e", "e/own", "e/x"]);
    expect(await it.content("e/own")).toBe(bytesOf("d/own", 40).toString("latin1"));
  });
});

describe("sent again after a lost answer, and refused", () => {
  const isCreation = ({ method, path }: HttpRequest) =>
    method === "POST" && (path === "/v1/nodes" || path.startsWith("/v1/files/"));

  /** Asked again, the gateway does not look whether it has done that already: it is not allowed. */
  function refuseAfterBirth(it: Awaited<ReturnType<typeof begin>>): void {
    const birth = it.once("lost-after", isCreation);
    const { choose } = it.rules;
    it.rules.choose = (request) => {
      if (birth.isSent()) it.mount.weather.refusal = 403;
      return choose(request);
    };
  }

  async function isRefused(it: Awaited<ReturnType<typeof begin>>): Promise<void> {
    await it.until(() => it.world.lines.some((line) => /POST .* 403$/.test(line)));
    Object.assign(it.rules, { choose: () => undefined });
    it.mount.weather.refusal = undefined;
  }

  test("a new file that is then removed here goes, and stays away", async () => {
    const it = await begin();
    await it.drain();
    refuseAfterBirth(it);
    await it.save("a");
    await isRefused(it);
    await it.unlink("a");
    await it.ends([]);
  });

  test("a new file that is then written again is one file, without a conflict", async () => {
    const it = await begin();
    await it.drain();
    refuseAfterBirth(it);
    await it.save("a");
    await isRefused(it);
    await it.save("a", "second");
    await it.ends(["a"]);
    expect(await it.content("a")).toBe(bytesOf("second", 40).toString("latin1"));
  });

  test("a new folder shows what others have put into it since", async () => {
    const it = await begin();
    const { outside, workspace } = it.world;
    it.world.setLag({ path: 0, journal: 0, id: 9_000 });
    let births = 0;
    it.rules.choose = (request) => {
      if (!isCreation(request)) return undefined;
      births += 1;
      return "lost-after";
    };
    await it.world.run(it.calls().mkdir("d"));
    await it.until(() => births > 0);
    it.rules.choose = () => undefined;
    it.mount.weather.refusal = 403;
    const [made] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.createFolder(made?.id ?? "", "others"));
    await it.world.clock.advance(12_000);
    it.mount.weather.refusal = undefined;
    await it.world.run(it.engine().retry());
    await it.ends(["d", "d/others"]);
  });
});

describe("given up before its answer, and told of by a late journal: a drain waits for what follows from it", () => {
  /** `a` is at the gateway, and nothing has told of it yet. */
  async function savedInDoubt() {
    const it = await begin();
    await it.drain();
    it.world.setLag({ path: 0, journal: 3_000, id: 0 });
    const birth = it.once("silent-after", isCreation);
    await it.save("a");
    await it.until(birth.isSent);
    await it.world.clock.advance(100);
    // Index and journal show everything before the deletion is sent again.
    it.once("lost-before", ({ method }) => method === "DELETE");
    return it;
  }

  /** The drain has ended: the gateway has these names and no others, and nothing waits. */
  async function has(it: Awaited<ReturnType<typeof begin>>, names: readonly string[]): Promise<void> {
    expect([(await it.nodes()).map(({ name }) => name), it.engine().status().dirty]).toEqual([names, 0]);
    await it.ends(names);
  }

  test("the file was removed here: its node is deleted", async () => {
    const it = await savedInDoubt();
    await it.unlink("a");
    await it.save("b");
    await it.drain();
    await has(it, ["b"]);
  });

  test("the file was saved anew and renamed here: the node of the old name is deleted", async () => {
    const it = await savedInDoubt();
    await it.save("a", "second");
    await it.rename("a", "b");
    await it.save("c");
    await it.drain();
    await has(it, ["b", "c"]);
  });
});

describe("answered after others have changed what was made", () => {
  /** An id that has answered 404 for so long is gone. */
  const SETTLED_MS = 5 * 60_000 + 10_000;

  test("a folder whose creation is answered late shows what others put into it meanwhile", async () => {
    const it = await begin();
    const { outside, workspace } = it.world;
    await it.drain();
    const birth = it.once("silent-after", ({ method, path }) => method === "POST" && path === "/v1/nodes");
    await it.world.run(it.calls().mkdir("d"));
    await it.until(birth.isSent);
    await it.world.clock.advance(1_000);
    const [folder] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.createFolder(folder?.id ?? "", "e"));
    await it.world.clock.advance(5_000);
    await it.ends(["d", "d/e"]);
  });

  test.each([false, true])(
    "killed between the answer and the read that follows from it: what was deleted meanwhile goes (row of that read lost: %s)",
    async (isBroken) => {
      const it = await begin();
      const { outside, workspace } = it.world;
      await it.drain();
      const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
      await it.save("a");
      await it.until(upload.isSent);
      const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
      await it.world.run(outside.deleteNode(node?.id ?? ""));
      // The journal is past the deletion, and listings too, before the upload is answered.
      await it.until(() => it.rows().cursor() >= it.world.position(), 5_000);
      const other = await it.world.run(outside.createFolder(workspace.root, "other"));
      await it.until(() => it.rows().cursor() >= other.position, 5_000);
      // Once lists and journal are past it, the deletion is remembered no more.
      it.mount.process?.database.exec("DELETE FROM tombstone");
      it.rules.choose = ({ method, path }) =>
        method === "GET" && path.startsWith("/v1/nodes/") ? "silent-before" : undefined;
      await it.until(() => it.rows().nodeOfId(node?.id ?? "") !== undefined);
      it.mount.crash((rows) => void (isBroken && rows.exec("DELETE FROM reread")));
      it.rules.choose = () => undefined;
      await it.world.run(it.mount.start());
      await it.world.clock.advance(SETTLED_MS);
      expect(await it.names()).toEqual(isBroken ? ["a", "other"] : ["other"]);
    },
  );

  test("a file whose deletion the journal told of before its creation is answered is gone at once", async () => {
    const it = await begin();
    const { outside, workspace } = it.world;
    await it.drain();
    const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
    await it.save("a");
    await it.until(upload.isSent);
    const [node] = (await it.world.run(outside.listFolder(workspace.root))).items;
    await it.world.run(outside.deleteNode(node?.id ?? ""));
    await it.until(() => it.asked.filter((line) => line === "POST /v1/files/a 201").length === 2);
    await it.world.clock.advance(1_000);
    expect(await it.names()).toEqual([]);
  });

  test("a new file is not taken for deleted while its id answers 404, though the journal told of it", async () => {
    const it = await begin();
    await it.drain();
    it.world.setLag({ path: 0, journal: 0, id: 20_000 });
    const upload = it.once("silent-after", ({ path }) => path.startsWith("/v1/files/"));
    await it.save("a");
    await it.until(upload.isSent);
    await it.until(() => it.rows().cursor() >= it.world.position());
    await it.untilSent();
    // The answer asked for the node, whose id answers 404; its folder is there.
    await it.until(() =>
      it
        .rows()
        .rereads()
        .some(({ missingSince }) => missingSince !== null),
    );
    expect(await it.names()).toEqual(["a"]);
    await it.ends(["a"]);
  });
});
