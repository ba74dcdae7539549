/** People of an outside OpenID issuer: how they come to an account, and what an issuer or a way back is not believed. */
import { describe, expect, test } from "vitest";
import { type Issuer, type Lies, startIssuer } from "./issuer.ts";
import { Browser, createWorld, type World } from "./support.ts";

interface Outside {
  readonly world: World;
  readonly issuer: Issuer;
}

async function createOutside(): Promise<Outside> {
  const place = { issuer: "", clientId: "gateway", clientSecret: "a secret of the gateway's own" };
  const world = await createWorld(place);
  const issuer = await startIssuer(() => `${world.base}/sign-in/outside`);
  place.issuer = issuer.url;
  return { world, issuer };
}

/** As far as the issuer: its address with all that it is asked. */
async function leave(browser: Browser, code: string): Promise<URL> {
  await browser.open(`/sign-in?user_code=${code}`);
  await browser.submit("/sign-in/outside");
  const [, address = ""] = /^0; url=(.+)$/.exec(browser.headers.get("refresh") ?? "") ?? [];
  return new URL(address);
}

/** Signs in there, and answers the way back. */
async function visit(address: URL): Promise<URL> {
  const browser = new Browser(address.origin);
  for (let next = address; ; ) {
    await browser.open(pathOf(next));
    const location = browser.headers.get("location");
    if (location === null) throw new Error(`the issuer answered ${browser.status}: ${browser.page}`);
    next = new URL(location, next);
    if (next.origin !== address.origin) return next;
  }
}

const pathOf = ({ pathname, search }: URL) => `${pathname}${search}`;

async function signIn({ world }: Outside, code: string): Promise<Browser> {
  const browser = new Browser(world.base);
  await browser.open(pathOf(await visit(await leave(browser, code))));
  return browser;
}

describe("somebody of the issuer", () => {
  test("goes there, comes back, and approves a program with an account by the name there", async () => {
    const outside = await createOutside();
    const { world, issuer } = outside;
    const { code, deviceCode } = await world.device();
    const browser = new Browser(world.base);
    expect(await browser.open(`/sign-in?user_code=${code}`)).not.toContain("Password");
    expect(browser.page).toContain(new URL(issuer.url).host);
    const address = await leave(browser, code);
    expect(Object.fromEntries(address.searchParams)).toMatchObject({
      response_type: "code",
      client_id: "gateway",
      redirect_uri: `${world.base}/sign-in/outside`,
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{40,}$/),
      nonce: expect.stringMatching(/^[\w-]{40,}$/),
    });
    expect(browser.page).toContain("Go on");
    expect(await browser.open(pathOf(await visit(address)))).toContain("Let wsfs in?");
    expect(browser.page).toContain("<strong>grace</strong>");
    await browser.submit("/sign-in/approval", { decision: "approve" });
    expect((await world.poll(deviceCode)).status).toBe(200);
    expect(world.store.accounts.find("grace")).toBeDefined();
    expect(world.store.accounts.memberships({})).toEqual([]);
    // The secret goes to the issuer alone, and the code only with its proof.
    expect(address.href).not.toContain("secret");
    expect(issuer.exchanges).toHaveLength(1);
    expect(issuer.exchanges[0]?.get("code_verifier")).toMatch(/^[\w-]{43}$/);
  });

  test("is the same account each time, whatever the name is then; another person with that name is another one", async () => {
    const outside = await createOutside();
    const { world, issuer } = outside;
    const names = async () => {
      await signIn(outside, (await world.device()).code);
      return world.store.accounts.list().map(({ name }) => name);
    };
    expect(await names()).toEqual(["ada", "grace"]);
    issuer.person = { sub: "17", preferred_username: "ada" };
    expect(await names()).toEqual(["ada", "grace"]);
    // ada has a password here: nobody becomes ada by a name.
    issuer.person = { sub: "18", preferred_username: "ada" };
    expect(await names()).toEqual(["ada", "ada-2", "grace"]);
    issuer.person = { sub: "19", email: "eve@example.com", email_verified: false };
    expect(await names()).toEqual(["ada", "ada-2", "grace", "user"]);
    issuer.person = { sub: "20", email: "joan@example.com", email_verified: true };
    expect(await names()).toContain("joan@example.com");
  });

  test("has the account that was added without a password under the name, and the first one alone", async () => {
    const outside = await createOutside();
    const { world, issuer } = outside;
    const { accounts } = world.store;
    const kept = await accounts.add("grace", null);
    accounts.setRole(kept.id, "w-1", "editor");
    await signIn(outside, (await world.device()).code);
    expect(accounts.list().map(({ name }) => name)).toEqual(["ada", "grace"]);
    expect(accounts.role(kept.id, "w-1")).toBe("editor");
    issuer.person = { sub: "18", preferred_username: "grace" };
    await signIn(outside, (await world.device()).code);
    expect(accounts.list().map(({ name }) => name)).toEqual(["ada", "grace", "grace-2"]);
  });

  test("passwords of the gateway's own are taken no more", async () => {
    const { world } = await createOutside();
    const { code } = await world.device();
    const browser = new Browser(world.base);
    await browser.open(`/sign-in?user_code=${code}`);
    const page = browser.page.replace('action="/sign-in/outside"', 'action="/sign-in/password"');
    browser.page = page;
    const answer = await browser.submit("/sign-in/password", { name: "ada", password: "correct horse battery" });
    expect([browser.status, answer.includes("Let wsfs in?")]).toEqual([400, false]);
  });
});

describe("an issuer that lies is not believed", () => {
  const LIES: Readonly<Record<string, Lies>> = {
    "a token of another key": { sign: "another key" },
    "a token nobody signed": { sign: "none" },
    "its public key taken for a secret": { sign: "HS256 with the public key" },
    "another issuer's token": { claims: { iss: "https://elsewhere.example" } },
    "a token for another program": { claims: { aud: "another" } },
    "a token of another sign-in": { claims: { nonce: "another" } },
    "a token that has expired": { claims: { exp: 1_700_000_000 } },
  };

  test.each(Object.entries(LIES))("%s", async (_, lies) => {
    const outside = await createOutside();
    const { world, issuer } = outside;
    const { code } = await world.device();
    issuer.lies = lies;
    const browser = await signIn(outside, code);
    expect([browser.status, browser.page.includes("You are not signed in")]).toEqual([400, true]);
    expect(await browser.open(`/sign-in?user_code=${code}`)).not.toContain("Let wsfs in?");
    expect(world.store.accounts.find("grace")).toBeUndefined();
    // With what it says unchanged it would be.
    issuer.lies = { claims: { unchanged: true } };
    expect((await signIn(outside, code)).page).toContain("Let wsfs in?");
  });
});

describe("a way back", () => {
  /** What is changed of it. */
  const CHANGES: Readonly<Record<string, (way: URL) => void>> = {
    "with another state": ({ searchParams }) => searchParams.set("state", "another"),
    "without a state": ({ searchParams }) => searchParams.delete("state"),
    "from another issuer (mix-up)": ({ searchParams }) => searchParams.set("iss", "https://elsewhere.example"),
    "without its issuer": ({ searchParams }) => searchParams.delete("iss"),
    "with another code": ({ searchParams }) => searchParams.set("code", "another"),
    "with two codes": ({ searchParams }) => searchParams.append("code", "another"),
    "with an error": ({ searchParams }) => searchParams.set("error", "access_denied"),
  };

  test.each(Object.entries(CHANGES))("%s lets nobody in, and is used up", async (_, change) => {
    const { world } = await createOutside();
    const { code } = await world.device();
    const browser = new Browser(world.base);
    const way = await visit(await leave(browser, code));
    const wrong = new URL(way);
    change(wrong);
    for (const one of [wrong, way]) {
      expect(await browser.open(pathOf(one))).toContain("You are not signed in");
      expect(browser.headers.get("location")).toBeNull();
    }
    expect(world.store.accounts.find("grace")).toBeUndefined();
  });

  test("is good once, and in the browser that went alone", async () => {
    const outside = await createOutside();
    const { world, issuer } = outside;
    const { code } = await world.device();
    const browser = new Browser(world.base);
    const way = await visit(await leave(browser, code));
    // Somebody is lured to where the attacker signed in.
    const victim = new Browser(world.base);
    await victim.open("/sign-in");
    expect(await victim.open(pathOf(way))).toContain("You are not signed in");
    expect(issuer.exchanges).toHaveLength(0);
    const { cookie } = browser;
    expect(await browser.open(pathOf(way))).toContain("Let wsfs in?");
    browser.cookie = cookie;
    expect(await browser.open(pathOf(way))).toContain("You are not signed in");
    expect(issuer.exchanges).toHaveLength(1);
    // The code itself, in another sign-in.
    const again = await visit(await leave(browser, code));
    again.searchParams.set("code", way.searchParams.get("code") ?? "");
    expect(await browser.open(pathOf(again))).toContain("You are not signed in");
  });

  test("leads nowhere else, and too late to nothing", async () => {
    const { world } = await createOutside();
    const { code } = await world.device();
    const browser = new Browser(world.base);
    const way = await visit(await leave(browser, code));
    for (const name of ["return_to", "next", "redirect_uri"]) way.searchParams.set(name, "http://evil.example/");
    world.pass(601_000);
    expect(await browser.open(pathOf(way))).toContain("You are not signed in");
    expect(browser.page).not.toContain("evil.example");
    expect([browser.headers.get("location"), browser.headers.get("refresh")]).toEqual([null, null]);
  });
});

test("an issuer that does not answer is said, and asked again the next time", async () => {
  const place = { issuer: "http://127.0.0.1:1", clientId: "gateway" };
  const world = await createWorld(place);
  const { code } = await world.device();
  const browser = new Browser(world.base);
  await browser.open(`/sign-in?user_code=${code}`);
  expect(await browser.submit("/sign-in/outside")).toContain("127.0.0.1:1 does not answer");
  expect(browser.headers.get("refresh")).toBeNull();
});
