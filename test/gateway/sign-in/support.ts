/** A gateway's sign-in alone, served on a free port, and a person with a browser that keeps cookies. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type Account, type AccountStore, accountsInMemory } from "../../../src/gateway/accounts/index.ts";
import { createSignIn, type OutsideIssuer } from "../../../src/gateway/sign-in/index.ts";
import { plus, wallTime } from "../../../src/lib/clocks.ts";
import { SILENT } from "../../../src/lib/log.ts";
import { systemClock } from "../../../src/lib/system-clock.ts";

export const PASSWORD = "correct horse battery";
export const WORKSPACES = [
  { id: "w-1", name: "main", role: "owner" },
  { id: "w-2", name: "attic", role: "viewer" },
];
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export interface World {
  readonly base: string;
  readonly store: AccountStore;
  readonly ada: Account;
  /** Moves the sign-in's clock on. */
  pass(milliseconds: number): void;
  get(path: string): Promise<Answer>;
  post(path: string, form: Record<string, string>): Promise<Answer>;
  /** A program asks to be signed in. */
  device(form?: Record<string, string>): Promise<{ code: string; deviceCode: string; answer: Answer }>;
  poll(deviceCode: string): Promise<Answer>;
  refresh(token: string, form?: Record<string, string>): Promise<Answer>;
  /** Signed in by ada, who leaves all as it is. */
  login(): Promise<{ refresh: string; access: string; answer: Answer }>;
  browser(): Browser;
}

/** `outside`: where its people sign in instead. */
export async function createWorld(outside?: OutsideIssuer): Promise<World> {
  let offset = 0;
  const clock = {
    ...systemClock,
    wallClock: () => wallTime(systemClock.wallClock() + offset),
    elapsed: () => plus(systemClock.elapsed(), offset),
  };
  const store = accountsInMemory(clock);
  const ada = await store.accounts.add("ada", PASSWORD);
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] ?? "/";
    void signIn(request, response, path);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    store.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const signIn = createSignIn({ store, clock, issuer: base, log: SILENT, outside, workspacesOf: () => WORKSPACES });

  const call = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const answer = await fetch(`${base}${path}`, { redirect: "manual", ...init });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : {} };
  };
  const post = (path: string, form: Record<string, string>) =>
    call(path, { method: "POST", body: new URLSearchParams(form) });

  const world: World = {
    base,
    store,
    ada,
    pass: (milliseconds) => {
      offset += milliseconds;
    },
    get: (path) => call(path),
    post,
    async device(form = {}) {
      const answer = await post("/oauth/device", { client_id: "wsfs", ...form });
      return { code: String(answer.json.user_code), deviceCode: String(answer.json.device_code), answer };
    },
    poll: (deviceCode) =>
      post("/oauth/token", { grant_type: DEVICE_GRANT, client_id: "wsfs", device_code: deviceCode }),
    refresh: (token, form = {}) =>
      post("/oauth/token", { grant_type: "refresh_token", client_id: "wsfs", refresh_token: token, ...form }),
    async login() {
      const { code, deviceCode } = await world.device();
      const browser = world.browser();
      await browser.signIn(code);
      await browser.submit("/sign-in/approval", { decision: "approve" });
      const answer = await world.poll(deviceCode);
      return { refresh: String(answer.json.refresh_token), access: String(answer.json.access_token), answer };
    },
    browser: () => new Browser(base),
  };
  return world;
}

/** Keeps cookies and the last page, and fills in its forms as they are shown. */
export class Browser {
  cookie = "";
  page = "";
  status = 0;
  headers = new Headers();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  async open(path: string): Promise<string> {
    return this.#ask(path, {});
  }

  /** Sends the form of the page that goes to `action`, with these fields changed. `scope` null: all its boxes are empty. */
  async submit(action: string, changes: Record<string, string | readonly string[] | null> = {}): Promise<string> {
    const form = new RegExp(`<form method="post" action="${action}">(.*?)</form>`, "s").exec(this.page)?.[1];
    if (form === undefined) throw new Error(`The page has no form ${action}: ${this.page}`);
    const fields = new URLSearchParams();
    for (const [input] of form.matchAll(/<input[^>]*>/g)) {
      const name = /name="([^"]*)"/.exec(input)?.[1];
      const value = /value="([^"]*)"/.exec(input)?.[1] ?? "";
      if (name !== undefined && !(name in changes)) fields.append(name, value);
    }
    for (const [name, value] of Object.entries(changes)) {
      for (const one of [value ?? []].flat()) fields.append(name, one);
    }
    return this.#ask(action, { method: "POST", body: fields });
  }

  async signIn(code: string, password = PASSWORD): Promise<string> {
    await this.open(`/sign-in?user_code=${code}`);
    return this.submit("/sign-in/password", { name: "ada", password });
  }

  async #ask(path: string, init: RequestInit): Promise<string> {
    const headers = this.cookie === "" ? {} : { cookie: this.cookie };
    const answer = await fetch(`${this.#base}${path}`, { redirect: "manual", headers, ...init });
    for (const line of answer.headers.getSetCookie()) {
      const [, pair = "", name = "", value = ""] = /^(([^=]+)=([^;]*))/.exec(line) ?? [];
      const others = this.cookie.split("; ").filter((one) => one !== "" && !one.startsWith(`${name}=`));
      this.cookie = [...others, ...(value === "" ? [] : [pair])].join("; ");
    }
    this.headers = answer.headers;
    this.status = answer.status;
    this.page = await answer.text();
    return this.page;
  }
}
