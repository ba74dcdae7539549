/**
 * Programs that watch a mount (inotify) hear of what others change elsewhere, as if it had been done here, and of
 * nothing else; whatever becomes of the process that tells them, no file is another one for it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { becomeOrdinaryUser, type OrdinaryUser, whyNoOrdinaryUser } from "../support/ordinary-user.ts";
import { check, createPlace, type Place, type TestGateway, type TestMount } from "../support/wsfs.ts";
import { contentsOf, readTree } from "./support/tree.ts";
import { type Watcher, watch } from "./support/watcher.ts";

const LIMIT_MS = 180_000;

let user: OrdinaryUser | undefined;
let place: Place;
let gateway: TestGateway;
let here: TestMount;
let there: TestMount;

async function mountBoth(asUser: boolean): Promise<void> {
  user = asUser ? await becomeOrdinaryUser("") : undefined;
  place = createPlace(undefined, user);
  gateway = await place.gateway();
  here = await place.mount(gateway, { name: "here" });
  there = await place.mount(gateway, { name: "there" });
  await until("the journal is live", async () => (await here.status()).live === true);
}
async function takeAway(): Promise<void> {
  await place.cleanUp();
  await user?.end();
}

/** What is done there. */
const elsewhere = async (script: string) => check(await there.sh(`set -e\n${script}`));

/** It is there, and here. */
async function settled(): Promise<void> {
  check(await place.wsfs(["drain", there.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  check(await place.wsfs(["drain", here.dir, "--timeout", "60"], { timeoutMs: 90_000 }));
  const contents = async ({ dir }: TestMount) => JSON.stringify(contentsOf(await readTree(place, dir)));
  await until("both show the same", async () => (await contents(here)) === (await contents(there)));
}

const LOOK = "ls -lR > /dev/null";

const whyNot = whyNoOrdinaryUser();
for (const [who, asUser, missing] of [
  ["root", false, undefined],
  ["an ordinary user", true, whyNot],
] as const)
  describe.skipIf(missing !== undefined)(missing === undefined ? who : `${who} (${missing})`, () => {
    // A test has folders of its own in them.
    beforeAll(() => mountBoth(asUser));
    afterAll(takeAway);

    test(
      "hears of everything others do, by its kind, and finds it so",
      async () => {
        await elsewhere(
          "mkdir d e d/gone d/kept; echo 1 > d/a; echo 2 > d/b; echo 3 > d/c; echo 4 > d/mode; echo 5 > d/x",
        );
        await settled();
        check(await here.sh(LOOK));
        const watcher = await watch(place, here.dir, ["d", "e", "d/a", "d/b"]);
        await elsewhere("echo new > d/new; mkdir d/folder; ln -s a d/link");
        await watcher.hears(["CREATE d/new", "CLOSE_WRITE d/new", "CREATE d/folder", "CREATE d/link"]);
        expect(check(await here.sh("cat d/new; readlink d/link; ls d/folder")).stdout).toBe("new\na\n");
        await elsewhere("echo more >> d/a; chmod 640 d/mode; mv d/c e/d; rm d/b; rmdir d/gone; mv d/kept e/");
        await watcher.hears(["MODIFY d/a", "CLOSE_WRITE d/a", "ATTRIB d/mode", "DELETE d/b", "DELETE_SELF d/b"]);
        await watcher.hears([
          "MOVED_FROM d/c",
          "MOVED_TO e/d",
          "DELETE d/gone",
          "MOVED_FROM d/kept",
          "MOVED_TO e/kept",
        ]);
        expect(check(await here.sh("cat d/a; stat -c %a d/mode; cat e/d; ls d")).stdout).toBe(
          "1\nmore\n640\n3\na\nfolder\nlink\nmode\nnew\nx\n",
        );
        watcher.forget();
        // As editors save, and a file that comes in the place of another.
        await elsewhere("echo saved > d/.x.tmp; mv d/.x.tmp d/x; rm d/new; mkdir d/new");
        await watcher.hears(["MODIFY d/x"]);
        expect(check(await here.sh("cat d/x")).stdout).toBe("saved\n");
        // Who watches a file alone goes on to hear of it, however often it is another content.
        const ofFile = await watch(place, here.dir, ["d/a"]);
        for (const content of ["again", "once more", "and again"]) {
          await elsewhere(`echo ${content} > d/a`);
          await ofFile.hears(["MODIFY d/a", "CLOSE_WRITE d/a"]);
          expect(check(await here.sh("cat d/a")).stdout).toBe(`${content}\n`);
          ofFile.forget();
        }
        watcher.end();
        ofFile.end();
        await settled();
      },
      LIMIT_MS,
    );

    test(
      "hears of a folder that nobody has looked into",
      async () => {
        await elsewhere("mkdir -p far/deep; echo old > far/deep/old");
        await settled();
        await here.umount();
        here = await place.mount(gateway, { name: "anew" });
        // The names that a list gives the kernel it does not look up any more.
        check(await here.sh("ls -l . far"));
        const watcher = await watch(place, here.dir, [".", "far/deep"]);
        // Until they are known, nobody can tell what is new in them.
        let count = 0;
        await until("something new is heard of in both", async () => {
          await elsewhere(`echo ${++count} > far/deep/new-${count}; echo ${count} > new-${count}; sleep 0.3`);
          const heard = watcher.heard().join();
          return heard.includes("CREATE far/deep/new-") && heard.includes("CREATE ./new-");
        });
        expect(watcher.heard().join("\n")).not.toContain("old");
        watcher.end();
      },
      LIMIT_MS,
    );

    test(
      "hears of what others make as made and written, whoever looks at the folder meanwhile",
      async () => {
        await elsewhere("mkdir seen");
        await settled();
        const watcher = await watch(place, here.dir, ["seen"]);
        const looking = here.sh("while [ ! -e seen/over ]; do ls -lR seen; cat seen/f*; done > /dev/null 2>&1");
        const names = Array.from({ length: 10 }, (_, index) => `f${index}`);
        for (const name of names) await elsewhere(`echo ${name} > seen/${name}; mkdir seen/in-${name}; sleep 0.3`);
        await watcher.hears(
          names.flatMap((name) => [`CREATE seen/${name}`, `CLOSE_WRITE seen/${name}`, `CREATE seen/in-${name}`]),
        );
        await elsewhere("touch seen/over");
        await looking;
        watcher.end();
        expect(watcher.heard().filter((event) => event.startsWith("DELETE"))).toEqual([]);
        expect(check(await here.sh("cat seen/f*")).stdout).toBe(names.map((name) => `${name}\n`).join(""));
      },
      LIMIT_MS,
    );

    test(
      "hears of what is done here what it would of any folder, and of an upload nothing",
      async () => {
        const script = `set -e; echo 1 > f; echo 2 >> f; mkdir s; mv f g; chmod 600 g; ln -s g l; ln g h; touch -d @0 g
        echo 3 > s/in; mv s/in i; rm h; cp g k; mv k g; rmdir s`;
        const folders = { plain: place.path("plain"), mount: `${here.dir}/own` };
        const heard: Partial<Record<keyof typeof folders, string[]>> = {};
        check(await place.sh(`mkdir '${folders.plain}' '${folders.mount}'`));
        await settled();
        for (const name of ["plain", "mount"] as const) {
          const watcher = await watch(place, folders[name], ["."]);
          check(await place.sh(`cd '${folders[name]}'; ${script}`));
          await watcher.hears(["DELETE ./s"]);
          if (name === "mount") {
            await settled();
            await elsewhere("true; sleep 2");
          }
          heard[name] = watcher.heard();
          watcher.end();
        }
        expect(heard.mount).toEqual(heard.plain);
      },
      LIMIT_MS,
    );
  });

const CHANGES = 60;

describe("what dies on the way", () => {
  beforeEach(() => mountBoth(false));
  afterEach(takeAway);

  test(
    "a daemon and the process that tells, killed again and again: no file is another one, no program sees an error",
    async () => {
      await elsewhere("mkdir d e; for i in $(seq 20); do echo $i > d/$i; done");
      await settled();
      check(await here.sh(LOOK));
      const watcher: Watcher = await watch(place, here.dir, [".", "d", "e"]);
      let isOver = false;
      const killing = (async () => {
        for (let round = 0; !isOver; round += 1) {
          await new Promise((resolve) => setTimeout(resolve, 300 + 37 * (round % 11)));
          // More deaths of daemons within a minute would take the mount off.
          const victim = round % 8 === 7 && round < 32 ? "kill -9" : "pkill -9 -x wsfs-replayer -P";
          await place.sh(`${victim} ${(await here.status().catch(() => ({ pid: 0 }))).pid ?? 0}`);
        }
      })();
      // Programs work here on files of their own meanwhile, some by names that come and go elsewhere.
      const local = here.sh(
        `set -e; for i in $(seq ${CHANGES}); do echo $i > own-$i; mv own-$i d/own-$i; cat d/own-$i > /dev/null; rm d/own-$i
         echo kept > d/kept-$i; [ "$(cat d/kept-$i)" = kept ]; sleep 0.05; done`,
        { timeoutMs: 120_000 },
      );
      await elsewhere(
        `for i in $(seq 20); do mv d/$i e/$i; echo more >> e/$i; mkdir e/f$i; mv e/f$i d/f$i; rmdir d/f$i; sleep 0.1
         echo again > d/$i; rm d/$i; echo last > d/$i; chmod 600 d/$i; done`,
      );
      expect((await local).stderr).toBe("");
      isOver = true;
      await killing;
      await until("a daemon serves", async () => (await here.status().catch(() => undefined)) !== undefined);
      await settled();
      const kept = check(
        await here.sh(`cat d/kept-* | sort | uniq -c; ls d | grep -c kept; cat d/[0-9]* | sort | uniq -c`),
      );
      expect(kept.stdout.replace(/ +/g, " ")).toBe(` ${CHANGES} kept\n${CHANGES}\n 20 last\n`);
      watcher.forget();
      await elsewhere("echo heard > d/at-last");
      await watcher.hears(["CREATE d/at-last"], 60_000);
    },
    2 * LIMIT_MS,
  );

  test(
    "a process that tells ends with its daemon, also where it is stopped; and is in no way when the mount is taken off",
    async () => {
      await elsewhere("mkdir d; echo 1 > d/1");
      await settled();
      check(await here.sh(LOOK));
      const watcher = await watch(place, here.dir, ["d"]);
      await elsewhere("echo 2 > d/2");
      await watcher.hears(["CREATE d/2"]);
      const tellers = async () => (await place.sh(`pgrep -x wsfs-replayer -P ${here.pid}`)).stdout.trim();
      const teller = await tellers();
      expect(teller).toMatch(/^\d+$/);
      check(await place.sh(`kill -STOP ${teller}; kill -9 ${here.pid}`));
      await until("it has ended", async () => (await place.sh(`test -e /proc/${teller}`)).code !== 0);
      await until("a daemon serves", async () => (await here.status().catch(() => undefined)) !== undefined);
      await elsewhere("for i in $(seq 300); do echo $i > d/f$i; done");
      await watcher.hears(["CREATE d/f1"], 60_000);
      watcher.end();
      await here.umount();
    },
    LIMIT_MS,
  );
});
