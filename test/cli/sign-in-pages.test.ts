/**
 * The pages of a sign-in in Chromium, wide and as on a phone, with and without JavaScript, light and dark: `wsfs login` and
 * the gateway are processes, the address is the one that is printed. Each page is also looked over for what anybody needs
 * who reads, types or points with difficulty. WSFS_SCREENSHOTS=DIR keeps a picture of each.
 */
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { SCOPE_WORDS } from "../../src/contract/scope-words.ts";
import { SCOPES } from "../../src/contract/scopes.ts";
import { passwordPage } from "../../src/gateway/sign-in/pages.ts";
import { startIssuer } from "../gateway/sign-in/issuer.ts";
import { type Finished, finished } from "../support/child.ts";
import { check, createPlace, type Place, type TestGateway } from "../support/wsfs.ts";

const CHROMIUM = (process.env.PATH ?? "")
  .split(":")
  .map((folder) => join(folder, "chromium"))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
const PAGE_FAULTS = readFileSync(new URL("support/page-faults.mjs", import.meta.url), "utf8");
const described = z.object({
  language: z.string(),
  title: z.string(),
  headings: z.array(z.string()),
  width: z.number(),
  faults: z.record(z.string(), z.array(z.string())),
});
const SHOTS = process.env.WSFS_SCREENSHOTS;
const PASSWORD = "correct horse battery";

interface Look {
  readonly name: string;
  readonly width: number;
  readonly colorScheme: "light" | "dark";
  readonly javaScriptEnabled: boolean;
}
const LOOKS: readonly Look[] = [
  { name: "desktop", width: 1280, colorScheme: "light", javaScriptEnabled: true },
  { name: "desktop without JavaScript", width: 1280, colorScheme: "dark", javaScriptEnabled: false },
  { name: "phone", width: 375, colorScheme: "dark", javaScriptEnabled: true },
  { name: "phone without JavaScript", width: 375, colorScheme: "light", javaScriptEnabled: false },
];

describe.skipIf(CHROMIUM === undefined)(
  "the pages in Chromium (needs the program chromium)",
  { timeout: 180_000 },
  () => {
    let place: Place;
    let gateway: TestGateway;
    let browser: Browser;

    beforeAll(async () => {
      place = createPlace();
      gateway = await place.gateway({ args: ["--workspace", "main", "--workspace", "attic"] });
      const user = ["ada", "--data", gateway.data];
      check(await place.wsfs(["gateway", "user", "add", ...user], { input: `${PASSWORD}\n` }));
      for (const [workspace, role] of [
        ["main", "owner"],
        ["attic", "viewer"],
      ] as const) {
        check(await place.wsfs(["gateway", "grant", "set", ...user, "--workspace", workspace, "--role", role]));
      }
      check(await place.wsfs(["env", "add", "team", "--base-url", gateway.baseUrl]));
      browser = await chromium.launch({
        executablePath: CHROMIUM ?? "",
        // Chromium has no sandbox for root.
        chromiumSandbox: process.getuid?.() !== 0,
        args: ["--disable-dev-shm-usage"],
      });
    });
    afterAll(async () => {
      await browser?.close();
      await place?.cleanUp();
    });

    /** `wsfs login` as a process, and the address and code it prints for people. */
    async function startLogin(env = "team", ...args: string[]) {
      const child = place.spawnWsfs(["login", "--env", env, ...args]);
      const ended: Promise<Finished> = finished(child);
      if (child.stderr === null) throw new Error("nothing is read of it");
      let text = "";
      for await (const line of createInterface(child.stderr)) {
        text += `${line}\n`;
        const [, code, address] = /approve the code (\S+):\n\s+(\S+)\n/.exec(text) ?? [];
        if (code !== undefined && address !== undefined) return { code, address, ended };
      }
      throw new Error(`wsfs login printed no address: ${text}`);
    }

    async function openBrowser(
      { width, colorScheme, javaScriptEnabled }: Look,
      sites: readonly string[] = [gateway.baseUrl],
    ): Promise<Page> {
      const context: BrowserContext = await browser.newContext({
        viewport: { width, height: 740 },
        isMobile: width < 500,
        colorScheme,
        javaScriptEnabled,
      });
      onTestFinished(() => context.close());
      const page = await context.newPage();
      // What the content security policy forbids is said there, too.
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().includes("status of 400")) complaints.push(message.text());
      });
      page.on("request", (request) => {
        if (!sites.some((site) => request.url().startsWith(`${site}/`))) complaints.push(request.url());
      });
      return page;
    }
    const complaints: string[] = [];

    /** Everything that a page has to have, and its picture. */
    async function lookOver(page: Page, name: string, { width, name: look }: Look): Promise<void> {
      // Its text is there before its style is.
      await page.waitForLoadState("load");
      if (SHOTS !== undefined) {
        await page.screenshot({ path: join(SHOTS, `${name} ${look}.png`.replaceAll(" ", "-")), fullPage: true });
      }
      const found = described.parse(await page.evaluate(PAGE_FAULTS));
      expect([name, complaints]).toEqual([name, []]);
      expect({ name, ...found }).toEqual({
        name,
        language: "en",
        title: expect.stringMatching(/\w.* · wsfs$/),
        headings: [expect.stringMatching(/\w/)],
        width,
        faults: Object.fromEntries(Object.keys(found.faults).map((fault) => [fault, []])),
      });
    }

    test.each(LOOKS)(
      "$name: a login with less than it asked for, a wrong password before; another one denied",
      async (look) => {
        const [allowed, denied] = [await startLogin(), await startLogin("team", "--json")];
        const page = await openBrowser(look);
        const press = (name: string) => page.getByRole("button", { name }).click();
        // The page of before may still be shown when a button was pressed.
        const arrivedAt = (name: string) => page.getByRole("heading", { level: 1, name }).waitFor();

        await page.goto(allowed.address.split("?")[0] ?? "");
        await lookOver(page, "code", look);
        await page.getByLabel("Code").fill("BBBB-BBBB");
        await press("Continue");
        expect(await page.getByRole("alert").textContent()).toContain("No program waits with this code");
        await lookOver(page, "wrong code", look);

        await page.goto(allowed.address);
        await lookOver(page, "sign in", look);
        await page.getByLabel("Account").fill("ada");
        await page.getByLabel("Password").fill("not my password");
        await press("Sign in");
        expect(await page.getByRole("alert").textContent()).toContain("no such account with this password");
        expect(await page.getByLabel("Account").inputValue()).toBe("ada");
        expect(await page.getByLabel("Password").inputValue()).toBe("");
        await lookOver(page, "wrong password", look);
        await page.getByLabel("Password").fill(PASSWORD);
        await press("Sign in");

        await arrivedAt("Let wsfs in?");
        expect(await page.locator("main").innerText()).toContain(allowed.code);
        expect(page.url()).not.toContain(allowed.code);
        await lookOver(page, "approval", look);
        for (const scope of SCOPES) {
          const box = page.getByLabel(SCOPE_WORDS[scope]);
          expect([scope, await box.isChecked()]).toEqual([scope, true]);
          await box.uncheck();
        }
        await page.getByLabel("Where").selectOption({ label: "Only attic (you are viewer)" });
        await press("Approve");
        expect(await page.getByRole("alert").textContent()).toContain("at least one");
        await lookOver(page, "nothing left", look);
        // What was taken off is not put on again, and the workspace stays chosen.
        expect(await page.getByLabel(SCOPE_WORDS["node.file.delete"]).isChecked()).toBe(false);
        expect(await page.getByLabel("Where").locator("option:checked").textContent()).toContain("attic");
        for (const scope of ["node.file.read", "account.workspace.read"] as const) {
          await page.getByLabel(SCOPE_WORDS[scope]).check();
        }
        await press("Approve");
        await arrivedAt("Approved");
        await lookOver(page, "approved", look);
        // Who has signed in is not asked for a password again.
        await page.goto(denied.address);
        await press("Deny");
        await arrivedAt("Denied");
        await lookOver(page, "denied", look);
        expect(await allowed.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("as ada") });
        expect(await denied.ended).toMatchObject({ code: 1, stderr: expect.stringContaining("denied") });

        const whoami = check(await place.wsfs(["whoami", "--env", "team", "--json"])).stdout;
        const known = z.looseObject({ scopes: z.array(z.string()) }).parse(JSON.parse(whoami));
        expect(known.scopes.toSorted()).toEqual(["account.workspace.read", "node.file.read"]);
        expect(whoami).toContain("attic");
        expect(whoami).not.toContain('"main"');
        check(await place.wsfs(["logout", "--env", "team"]));
      },
    );

    test.each(LOOKS)("$name: where the first password is, whose folder has a long name", async (look) => {
      const page = await openBrowser(look);
      const first = { account: "ada", file: `/home/ada/.local/share/${"folder".repeat(12)}/password` };
      const body = passwordPage({ token: "t", code: "BBBB-BBBB", name: "", first }).html;
      await page.route(`${gateway.baseUrl}/sign-in`, (route) => route.fulfill({ contentType: "text/html", body }));
      await page.goto(`${gateway.baseUrl}/sign-in`);
      expect(await page.locator("main").innerText()).toContain(first.file);
      await lookOver(page, "first password", look);
    });

    test("with keys alone, and another account", async () => {
      const { address, ended } = await startLogin();
      const page = await openBrowser(LOOKS[0] as Look);
      async function signIn(): Promise<void> {
        // The browser puts the cursor into the first field when it first draws the page, which may be after its load.
        await page.locator(":focus").and(page.getByLabel("Account")).waitFor();
        await page.keyboard.type("ada");
        await page.keyboard.press("Tab");
        await page.keyboard.type(PASSWORD);
        await page.keyboard.press("Enter");
      }
      async function press(name: string): Promise<void> {
        await page.getByRole("button", { name }).focus();
        await page.keyboard.press("Enter");
      }
      await page.goto(address);
      await signIn();
      await press("Use another account");
      await signIn();
      await press("Deny");
      await page.getByRole("heading", { name: "Denied" }).waitFor();
      expect((await ended).code).toBe(1);
    });

    test("at an outside issuer, which is another site", async () => {
      let returnTo = "";
      const issuer = await startIssuer(() => returnTo, "localhost");
      const secretFile = place.path("client-secret");
      writeFileSync(secretFile, `${issuer.clientSecret}\n`, { mode: 0o600 });
      const args = ["--issuer", issuer.url, "--client-id", issuer.clientId, "--client-secret-file", secretFile];
      const { baseUrl, data } = await place.gateway({ name: "gateway-of-others", args });
      returnTo = `${baseUrl}/sign-in/outside`;
      check(await place.wsfs(["gateway", "user", "add", "grace", "--outside", "--data", data]));
      const grant = ["gateway", "grant", "set", "grace", "--data", data, "--workspace", "workspace"];
      check(await place.wsfs([...grant, "--role", "editor"]));
      check(await place.wsfs(["env", "add", "others", "--base-url", baseUrl]));

      const look: Look = { name: "outside", width: 375, colorScheme: "light", javaScriptEnabled: false };
      const { address, ended } = await startLogin("others");
      const page = await openBrowser(look, [baseUrl, issuer.url]);
      await page.goto(address);
      await lookOver(page, "outside", look);
      await page.getByRole("button", { name: "Go to localhost" }).click();
      await page.getByRole("heading", { name: "Let wsfs in?" }).waitFor();
      expect(await page.locator("main").innerText()).toContain("grace");
      await lookOver(page, "back", look);
      await page.getByRole("button", { name: "Approve" }).click();
      await page.getByRole("heading", { name: "Approved" }).waitFor();
      expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining("as grace") });
      const whoami = check(await place.wsfs(["whoami", "--env", "others", "--json"])).stdout;
      expect(JSON.parse(whoami)).toMatchObject({ workspaces: [{ name: "workspace", role: "editor" }] });
    });

    test("another site cannot frame the page, and a form of its own does nothing", async () => {
      const { address, code, ended } = await startLogin();
      const page = await openBrowser(LOOKS[0] as Look);
      await page.goto(address);
      await page.getByLabel("Account").fill("ada");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign in" }).click();
      const site = "http://pages.example/";
      const fields = `<input name="code" value="${code}"><input name="decision" value="approve"><input name="scope" value="node.file.read">`;
      await page.route(`${site}**`, (route) =>
        route.fulfill({
          contentType: "text/html",
          body: `<iframe src="${address}"></iframe><form method="post" action="${gateway.baseUrl}/sign-in/approval">${fields}<button>Win</button></form>`,
        }),
      );
      await page.goto(site);
      const frame = page.frames()[1];
      expect(await frame?.locator("main").count()).toBe(0);
      await page.getByRole("button", { name: "Win" }).click();
      await page.waitForURL(`${gateway.baseUrl}/**`);
      expect(await page.getByRole("heading").textContent()).toBe("Try once more");
      complaints.length = 0;
      // It still waits, and the person who is signed in can deny it.
      await page.goto(address);
      await page.getByRole("button", { name: "Deny" }).click();
      expect((await ended).code).toBe(1);
    });
  },
);
