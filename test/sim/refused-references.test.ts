/** Content the gateway has, and will not take from there for another node: its bytes are sent; where they cannot be had, it is told and kept. */
import { expect, test } from "vitest";
import type { HttpRequest } from "../../src/contract/http.ts";
import type { QueueItem } from "../../src/vfs/engine.ts";
import { hashOf } from "../support/bytes-world.ts";
import { begin, there } from "./support/one-world.ts";

const TIMEOUT = { timeout: 120_000 };

const isReference = ({ body }: HttpRequest) => body?.kind === "json" && "copyOf" in Object(body.value);

/** Files "a" and "b"; what names another node's content is refused on its way. */
async function refusing(cacheLimit: number) {
  const tamper: { change: (request: HttpRequest) => HttpRequest } = { change: (request) => request };
  const it = await begin(true, { request: (request) => tamper.change(request) }, { settings: { cacheLimit } });
  const { world, mount } = it;
  await it.save("a", "content of a");
  await it.save("b", "content of b");
  await it.drain();
  const content = await it.content("a");
  await world.clock.advance(10_000);
  let references = 0;
  let reads = 0;
  const unknown = "019b76da-0000-7000-8000-000000000000";
  tamper.change = (request) => {
    const { body } = request;
    if (body?.kind !== "json" || !isReference(request)) return request;
    references += 1;
    return { ...request, body: { ...body, value: Object.assign({}, body.value, { copyOf: unknown }) } };
  };
  const engine = () => {
    if (mount.process === undefined) throw new Error("the mount is down");
    return mount.process.engine;
  };
  async function queue(): Promise<QueueItem[]> {
    const all: QueueItem[] = [];
    for await (const some of engine().queue(100)) all.push(...some);
    return all.filter(({ path }) => path !== "/");
  }
  return {
    ...it,
    text: content,
    engine,
    queue: () => world.run(queue()),
    /** Requests that were refused. */
    refused: () => ({ references, reads }),
    /** Its bytes are not to be had either. */
    hide() {
      const before = tamper.change;
      tamper.change = (request) => {
        if (request.method !== "GET" || !request.path.endsWith("/content")) return before(request);
        reads += 1;
        return { ...request, path: `/v1/nodes/${unknown}/content` };
      };
    },
    heal() {
      tamper.change = (request) => request;
    },
    there: async (name: string) => (await there(world)).get(name)?.content,
  };
}

test.each([
  { where: "kept here", cacheLimit: 1 << 20 },
  { where: "fetched for it", cacheLimit: 0 },
])("refused once, the bytes are sent: $where", TIMEOUT, async ({ cacheLimit }) => {
  const it = await refusing(cacheLimit);
  await it.rename("a", "b");
  await it.ends(["b"]);
  expect([it.refused().references, await it.there("b")]).toEqual([1, hashOf(Buffer.from(it.text))]);
});

test(
  "with bytes that cannot be had either it is parked with the reason, in nobody's way, and goes when it can",
  TIMEOUT,
  async () => {
    const it = await refusing(0);
    it.hide();
    await it.rename("a", "b");
    await it.world.clock.advance(5_000);
    const trying = (await it.queue()).find(({ path }) => path === "/b");
    expect(trying).toMatchObject({ what: "version", state: "retry" });
    expect(trying?.why).toMatch(/^its content could not be read \d times: /);
    await it.save("other");
    await it.world.clock.advance(10_000);
    expect(await it.there("other")).toBeDefined();
    await it.world.clock.advance(300_000);
    const [parked, waiting] = await it.queue();
    expect(parked).toMatchObject({ path: "/b", state: "parked" });
    expect(parked?.why).toContain("what is missing of its content cannot be had: ");
    expect(waiting).toMatchObject({ path: "/a", what: "delete", why: "its content is still needed by another one" });
    expect(it.engine().status().parked).toBe(1);
    const { references, reads } = it.refused();
    expect([references, reads < 12]).toEqual([1, true]);
    it.heal();
    expect(await it.world.run(it.engine().retry(["/b"]))).toEqual({ retried: 1, unknown: [] });
    await it.ends(["b", "other"]);
    expect(await it.there("b")).toBe(hashOf(Buffer.from(it.text)));
  },
);
