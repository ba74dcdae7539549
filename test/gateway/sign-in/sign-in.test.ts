/** Device authorization, the pages it is approved on, refresh with rotation, revocation; and attacks on each. */
import * as jose from "jose";
import { describe, expect, test } from "vitest";
import { SCOPES } from "../../../src/contract/scopes.ts";
import { createWorld, PASSWORD } from "./support.ts";

describe("discovery", () => {
  test("both addresses name what there is", async () => {
    const world = await createWorld();
    for (const path of ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]) {
      const { json, status } = await world.get(path);
      expect(status).toBe(200);
      expect(json).toMatchObject({
        issuer: world.base,
        device_authorization_endpoint: `${world.base}/oauth/device`,
        token_endpoint: `${world.base}/oauth/token`,
        revocation_endpoint: `${world.base}/oauth/revoke`,
        jwks_uri: `${world.base}/oauth/jwks`,
      });
      expect(json.scopes_supported).toEqual(expect.arrayContaining([...SCOPES]));
    }
  });

  test("public keys are public alone", async () => {
    const world = await createWorld();
    const { json } = await world.get("/oauth/jwks");
    expect(json.keys).toHaveLength(1);
    expect(JSON.stringify(json)).not.toContain('"d"');
  });
});

describe("a program is signed in", () => {
  test("by its code, once a person has approved it", async () => {
    const world = await createWorld();
    const { code, deviceCode, answer } = await world.device();
    expect(code).toMatch(/^[A-Z]{4}-[A-Z]{4}$/);
    expect(answer.json).toMatchObject({
      interval: 2,
      expires_in: 600,
      verification_uri: `${world.base}/sign-in`,
      verification_uri_complete: `${world.base}/sign-in?user_code=${code}`,
    });
    expect((await world.poll(deviceCode)).json).toMatchObject({ error: "authorization_pending" });
    const browser = world.browser();
    expect(await browser.open("/sign-in")).toContain("Type the code");
    expect(await browser.submit("/sign-in", { code: code.toLowerCase().replace("-", " ") })).toContain("Password");
    const page = await browser.submit("/sign-in/password", { name: "ada", password: PASSWORD });
    expect(page).toContain(code);
    expect(page).toContain("Read files and their versions");
    expect(page).toContain("Only main (you are owner)");
    expect(await browser.submit("/sign-in/approval", { decision: "approve" })).toContain("Approved");
    world.pass(5000);
    const { json } = await world.poll(deviceCode);
    expect(json).toMatchObject({ token_type: "Bearer", expires_in: 300, scope: SCOPES.join(" ") });
    // As another service checks it: by the public keys alone.
    const keys = jose.createRemoteJWKSet(new URL(`${world.base}/oauth/jwks`));
    const { payload, protectedHeader } = await jose.jwtVerify(String(json.access_token), keys, {
      issuer: world.base,
      audience: world.base,
      typ: "at+jwt",
    });
    expect(protectedHeader.alg).toBe("ES256");
    expect(payload).toMatchObject({ sub: world.ada.id, client_id: "wsfs", scope: SCOPES.join(" ") });
    expect(world.store.records.isLogin(String(payload.login))).toBe(true);
    // The code is used up.
    world.pass(5000);
    expect((await world.poll(deviceCode)).json).toMatchObject({ error: "invalid_grant" });
  });

  test("for less than it asked for: scopes taken off, one workspace", async () => {
    const world = await createWorld();
    const { code, deviceCode } = await world.device({
      scope: "node.file.read node.file.delete account.workspace.read",
    });
    const browser = world.browser();
    expect(await browser.signIn(code)).not.toContain("Create files");
    // What it did not ask for is not given, whatever a form says.
    const scope = ["node.file.read", "node.node.create"];
    await browser.submit("/sign-in/approval", { decision: "approve", scope, workspace: "w-2" });
    const { json } = await world.poll(deviceCode);
    expect(json.scope).toBe("node.file.read");
    expect(jose.decodeJwt(String(json.access_token))).toMatchObject({ scope: "node.file.read", workspace: "w-2" });
    const other = await world.refresh(String(json.refresh_token), { workspace: "main" });
    expect(other).toMatchObject({ status: 400, json: { error: "invalid_target" } });
  });

  test("not when the person denies it, and not by another account's page", async () => {
    const world = await createWorld();
    const { code, deviceCode } = await world.device();
    const browser = world.browser();
    await browser.signIn(code);
    expect(await browser.submit("/sign-in/approval", { decision: "deny" })).toContain("Denied");
    expect((await world.poll(deviceCode)).json).toMatchObject({ error: "access_denied" });
    expect(await browser.open(`/sign-in?user_code=${code}`)).toContain("No program waits with this code");
  });

  test("two answers: the first one counts", async () => {
    const world = await createWorld();
    const { code, deviceCode } = await world.device();
    const [one, other] = [world.browser(), world.browser()];
    await one.signIn(code);
    await other.signIn(code);
    await one.submit("/sign-in/approval", { decision: "approve", scope: ["node.file.read"] });
    expect(await other.submit("/sign-in/approval", { decision: "deny" })).toContain("No program waits");
    expect((await world.poll(deviceCode)).json.scope).toBe("node.file.read");
  });

  test("a program that asks too soon is told to slow down, more each time", async () => {
    const world = await createWorld();
    const { deviceCode } = await world.device();
    const error = async () => (await world.poll(deviceCode)).json.error;
    expect(await error()).toBe("authorization_pending");
    expect(await error()).toBe("slow_down");
    world.pass(5000);
    expect(await error()).toBe("slow_down");
    world.pass(15_000);
    expect(await error()).toBe("authorization_pending");
  });

  test("a resource that is not the gateway, and a client that is not known, are refused", async () => {
    const world = await createWorld();
    expect((await world.device({ resource: "http://evil.example/" })).answer.json).toMatchObject({
      error: "invalid_target",
    });
    expect((await world.device({ client_id: "other" })).answer.json).toMatchObject({ error: "invalid_client" });
  });
});

describe("refresh", () => {
  test("each use gives a successor, which may ask for less and name a workspace", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    const { json } = await world.refresh(refresh, { scope: "node.file.read", workspace: "main" });
    expect(json.scope).toBe("node.file.read");
    expect(jose.decodeJwt(String(json.access_token)).workspace).toBe("w-1");
    expect(json.refresh_token).not.toBe(refresh);
    // What was narrowed was the access token alone.
    expect((await world.refresh(String(json.refresh_token))).json.scope).toBe(SCOPES.join(" "));
    const more = await world.refresh(String(json.refresh_token), { scope: "root.everything.do" });
    expect(more.json.error).toBe("invalid_scope");
  });

  test("a lost answer loses nothing: the same successor for a minute, while that is unused", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    const first = await world.refresh(refresh);
    const again = await world.refresh(refresh);
    expect(again.json.refresh_token).toBe(first.json.refresh_token);
    expect(again.json.access_token).not.toBe(first.json.access_token);
    expect((await world.refresh(String(first.json.refresh_token))).status).toBe(200);
  });

  test("forty at once with one token have one successor", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    const answers = await Promise.all(Array.from({ length: 40 }, () => world.refresh(refresh)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const successors = new Set(answers.map(({ json }) => json.refresh_token));
    expect(successors.size).toBe(1);
    const [successor] = successors;
    expect((await world.refresh(String(successor))).status).toBe(200);
  });

  test.each([
    ["after a minute", async (world: Awaited<ReturnType<typeof createWorld>>) => world.pass(62_000)],
    [
      "after its successor was used",
      async (world: Awaited<ReturnType<typeof createWorld>>, next: string) => void (await world.refresh(next)),
    ],
  ])("used again %s, the whole login ends", async (_name, between) => {
    const world = await createWorld();
    const { refresh, access } = await world.login();
    const next = String((await world.refresh(refresh)).json.refresh_token);
    await between(world, next);
    expect((await world.refresh(refresh)).json.error).toBe("invalid_grant");
    expect((await world.refresh(next)).json.error).toBe("invalid_grant");
    expect(world.store.records.isLogin(String(jose.decodeJwt(access).login))).toBe(false);
  });

  test("a refusal uses nothing up", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    expect((await world.refresh(refresh, { workspace: "nowhere" })).json.error).toBe("invalid_target");
    expect((await world.refresh(refresh, { resource: "http://evil.example/" })).json.error).toBe("invalid_target");
    world.pass(120_000);
    expect((await world.refresh(refresh)).status).toBe(200);
  });

  test("a gateway that died between using a token and its successor gives one the next time", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    world.store.records.consume("RefreshToken", refresh);
    const { status, json } = await world.refresh(refresh);
    expect(status).toBe(200);
    expect((await world.refresh(String(json.refresh_token))).status).toBe(200);
  });

  test("revocation ends the login", async () => {
    const world = await createWorld();
    const { refresh, access } = await world.login();
    expect((await world.post("/oauth/revoke", { client_id: "wsfs", token: refresh })).status).toBe(200);
    expect((await world.refresh(refresh)).json.error).toBe("invalid_grant");
    expect(world.store.records.isLogin(String(jose.decodeJwt(access).login))).toBe(false);
  });

  test("a removed account's login is over", async () => {
    const world = await createWorld();
    const { refresh } = await world.login();
    world.store.accounts.remove(world.ada.id);
    expect((await world.refresh(refresh)).json.error).toBe("invalid_grant");
  });

  test("a key that is replaced signs no more, and what it signed is still good", async () => {
    const world = await createWorld();
    const { refresh, access } = await world.login();
    world.pass(31 * 86_400_000);
    world.store.keys.rotate(3600_000);
    const { json } = await world.refresh(refresh);
    const [before, after] = [access, String(json.access_token)].map((token) => jose.decodeProtectedHeader(token).kid);
    expect(after).not.toBe(before);
    const { keys } = (await world.get("/oauth/jwks")).json as { keys: { kid: string }[] };
    expect(keys.map(({ kid }) => kid).sort()).toEqual([before, after].sort());
  });
});

describe("attacks on the pages", () => {
  test("a form from elsewhere, without the page's token or with that of another visit, does nothing", async () => {
    const world = await createWorld();
    const { code, deviceCode } = await world.device();
    const victim = world.browser();
    await victim.signIn(code);
    const attacker = world.browser();
    await attacker.signIn(code, PASSWORD);
    const stolen = /name="token" value="([^"]+)"/.exec(attacker.page)?.[1] ?? "";
    for (const token of ["", stolen]) {
      const page = await victim.submit("/sign-in/approval", { decision: "approve", token });
      expect(page).toContain("This page was open for too long");
      await victim.open(`/sign-in?user_code=${code}`);
    }
    expect((await world.poll(deviceCode)).json.error).toBe("authorization_pending");
  });

  test("a browser that says the form came from another site is not obeyed", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const browser = world.browser();
    await browser.signIn(code);
    const token = /name="token" value="([^"]+)"/.exec(browser.page)?.[1] ?? "";
    const answer = await fetch(`${world.base}/sign-in/approval`, {
      method: "POST",
      headers: { cookie: browser.cookie, "sec-fetch-site": "cross-site" },
      body: new URLSearchParams({ token, code, decision: "approve", scope: "node.file.read" }),
    });
    expect(await answer.text()).toContain("This page was open for too long");
  });

  test("a cookie planted before is nobody's after signing in", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const browser = world.browser();
    await browser.open("/sign-in");
    const planted = browser.cookie;
    await browser.signIn(code);
    expect(browser.cookie).not.toBe(planted);
    const thief = world.browser();
    thief.cookie = planted;
    expect(await thief.open(`/sign-in?user_code=${code}`)).not.toContain("Let wsfs in?");
  });

  test("a visit ends after eight hours, with a new password, and with the account", async () => {
    const world = await createWorld();
    const ends = [
      () => world.pass(8 * 3600_000),
      () => world.store.accounts.setPassword(world.ada.id, PASSWORD),
      () => world.store.accounts.remove(world.ada.id),
    ];
    for (const end of ends) {
      const browser = world.browser();
      const { code } = await world.device();
      expect(await browser.signIn(code)).toContain("Let wsfs in?");
      await end();
      expect(await browser.open(`/sign-in?user_code=${(await world.device()).code}`)).toContain("Password");
    }
  });

  test("a form of another site, which brings no cookie, ends nobody's visit and begins none", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const answer = await world.post("/sign-in/approval", { code, decision: "approve", scope: "node.file.read" });
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([400, null]);
    const nobody = world.browser();
    await nobody.open("/sign-in");
    expect(world.store.records.find("Visit", nobody.cookie.split("=")[1] ?? "")).toBeUndefined();
  });

  test("no frame, no script, no referrer, no cache, a cookie for these pages alone; nowhere else to go", async () => {
    const world = await createWorld();
    const browser = world.browser();
    await browser.open("/sign-in?user_code=&return_to=http://evil.example/&next=//evil.example");
    expect(browser.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(browser.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(browser.headers.get("x-frame-options")).toBe("DENY");
    expect(browser.headers.get("cache-control")).toBe("no-store");
    expect(browser.headers.get("set-cookie")).toMatch(/HttpOnly; SameSite=Strict/);
    expect(browser.headers.get("set-cookie")).toContain("Path=/sign-in");
    expect(browser.page).not.toContain("<script");
    expect(browser.page).not.toContain("evil.example");
    expect(browser.headers.get("location")).toBeNull();
  });

  test("what a person types is shown as text", async () => {
    const world = await createWorld();
    const browser = world.browser();
    await browser.open(`/sign-in?user_code=${encodeURIComponent('"><script>alert(1)</script>')}`);
    expect(browser.page).toContain("&quot;&gt;&lt;script&gt;");
    expect(browser.page).not.toContain("<script>");
  });

  test("codes cannot be guessed: after twenty wrong ones no code is looked at", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const browser = world.browser();
    for (let tries = 0; tries < 20; tries += 1) await browser.open("/sign-in?user_code=AAAA-AAAA");
    expect(await browser.open(`/sign-in?user_code=${code}`)).toMatch(/Too many wrong codes. Try again in \d+ seconds/);
    world.pass(30_000);
    expect(await browser.open(`/sign-in?user_code=${code}`)).toContain("Password");
  });

  test("passwords cannot be guessed: after ten wrong ones of an account none is looked at", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const browser = world.browser();
    for (let tries = 0; tries < 10; tries += 1) {
      expect(await browser.signIn(code, "wrong password")).toContain("There is no such account with this password.");
    }
    expect(await browser.signIn(code)).toMatch(/Too many tries. Try again in \d+ seconds/);
    world.pass(60_000);
    expect(await browser.signIn(code)).toContain("Let wsfs in?");
  });

  test("many passwords at once are many tries", async () => {
    const world = await createWorld();
    const { code } = await world.device();
    const browsers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const browser = world.browser();
        await browser.open(`/sign-in?user_code=${code}`);
        return browser;
      }),
    );
    const tries = browsers.map((browser) =>
      browser.submit("/sign-in/password", { name: "ada", password: "wrong one" }),
    );
    const said = (await Promise.all(tries)).map((page) => /There is no such account|Too many tries/.exec(page)?.[0]);
    expect(said.filter((one) => one === "There is no such account")).toHaveLength(10);
    expect(said.filter((one) => one === "Too many tries")).toHaveLength(10);
  });

  test("nowhere is somebody sent elsewhere", async () => {
    const world = await createWorld();
    const elsewhere = "http://evil.example/";
    const query = new URLSearchParams({ client_id: "wsfs", response_type: "code", scope: "openid" });
    for (const name of ["redirect_uri", "post_logout_redirect_uri", "return_to", "next", "url"])
      query.set(name, elsewhere);
    const paths = ["/oauth/auth", "/oauth/device", "/oauth/token", "/oauth/session/end", "/oauth/jwks"];
    const pages = ["/sign-in", "/sign-in/", "/sign-in//evil.example", "/sign-in/outside", "/sign-in/leave"];
    for (const path of [...paths, ...pages]) {
      const answer = await world.get(`${path}?${query}`);
      expect([path, answer.status < 300 || answer.status >= 400]).toEqual([path, true]);
      expect([path, answer.headers.get("location"), answer.headers.get("refresh")]).toEqual([path, null, null]);
      expect([path, answer.text.includes("evil.example")]).toEqual([path, false]);
    }
  });

  test("a large form, and one that is none, are refused", async () => {
    const world = await createWorld();
    const large = await world.post("/sign-in", { code: "x".repeat(20_000) });
    expect(large.status).toBe(413);
    expect(large.text).toContain("That did not work");
    const json = await fetch(`${world.base}/sign-in`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{",
    });
    expect(json.status).toBe(415);
  });
});
