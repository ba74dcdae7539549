/**
 * The pages on which a person approves a program: a code, the sign-in of the person, the rights of the program. Every
 * mistake shows the same page again with a message. GET changes nothing, except for the return from an outside issuer
 * (outside.ts). Each form is valid only in the visit whose page showed it.
 */
import cookie from "@fastify/cookie";
import formbody from "@fastify/formbody";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { z } from "zod";
import { isScope } from "../../contract/scopes.ts";
import type { Clock } from "../../lib/runtime.ts";
import type { Account, AccountStore } from "../accounts/index.ts";
import { isAskedHere } from "../own-names.ts";
import { WITHOUT_SCHEMAS } from "../without-schemas.ts";
import type { DeviceRequest, DeviceRequests } from "./device-requests.ts";
import type { Html } from "./html.ts";
import { createLimit } from "./limits.ts";
import { OUTSIDE_COOKIE, OUTSIDE_SECONDS, type OutsideSignIn } from "./outside.ts";
import {
  type ApprovalPage,
  approvalPage,
  codePage,
  donePage,
  leavingPage,
  outsidePage,
  type PasswordPage,
  passwordPage,
  refusalPage,
  STYLE,
  STYLE_PATH,
} from "./pages.ts";
import { createVisits, VISIT_COOKIE, VISIT_SECONDS, type Visit } from "./visits.ts";

export interface WorkspaceChoice {
  readonly id: string;
  readonly name: string;
  readonly role: string;
}

interface ApprovalNeeds {
  readonly store: AccountStore;
  readonly clock: Clock;
  readonly requests: DeviceRequests;
  /** True if cookies are for HTTPS only. */
  readonly isSecure: boolean;
  /** Undefined: people have passwords here. */
  readonly outside?: OutsideSignIn | undefined;
  workspacesOf(account: string): readonly WorkspaceChoice[];
}

/** A person mistypes a code now and then; guessing one takes billions of tries. */
const WRONG_CODES = { burst: 20, everyMs: 30_000 };
const WRONG_PASSWORDS = { burst: 10, everyMs: 60_000 };
/** Hashing a password takes a processor for a tenth of a second. */
const PASSWORDS = { burst: 30, everyMs: 2000 };
const FORM_BYTES = 16 * 1024;

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
} as const;

const word = z.string().max(1024);
const form = z.object({
  token: word.optional(),
  code: word.default(""),
  name: word.default(""),
  password: z.string().max(4096).default(""),
  workspace: word.default(""),
  decision: word.default(""),
  scope: z.union([word, z.array(word).max(100)]).optional(),
});
type Form = z.infer<typeof form>;

const UNKNOWN_CODE =
  "No program waits with this code. Check the code; it ends after ten minutes, and the program then needs a new one.";
const STALE_FORM = "This page was open for too long, or cookies are off. Try once more.";

export function createApproval({
  store,
  clock,
  requests,
  isSecure,
  outside,
  workspacesOf,
}: ApprovalNeeds): FastifyInstance {
  const visits = createVisits(store);
  const wrongCodes = createLimit(clock, WRONG_CODES);
  const wrongPasswords = createLimit(clock, WRONG_PASSWORDS);
  const passwords = createLimit(clock, PASSWORDS);
  const app = fastify({ logger: false, bodyLimit: FORM_BYTES, schemaController: WITHOUT_SCHEMAS });
  app.removeAllContentTypeParsers();
  void app.register(cookie);
  void app.register(formbody);
  app.addHook("onSend", async (_request, reply) => void reply.headers(HEADERS));
  app.setErrorHandler((error, _request, reply) => {
    const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
    const [title, detail] =
      status < 500
        ? ["That did not work", "The form was not what this page sends."]
        : ["Something failed", "Try again."];
    return send(reply.code(status), refusalPage(title, detail));
  });
  app.setNotFoundHandler((_request, reply) => send(reply.code(404), refusalPage("Nothing is here", "No such page.")));

  const send = (reply: FastifyReply, page: Html) => reply.type("text/html; charset=utf-8").send(page.html);

  function showPassword(reply: FastifyReply, form: PasswordPage) {
    const first = isAskedHere(reply.request.raw) ? store.firstPassword() : undefined;
    return send(reply, passwordPage({ ...form, first }));
  }

  const visitOf = (request: FastifyRequest) => visits.find(request.cookies[VISIT_COOKIE]);

  function setVisit(reply: FastifyReply, visit: Visit): Visit {
    const options = { path: "/sign-in", httpOnly: true, sameSite: "strict", secure: isSecure } as const;
    reply.setCookie(VISIT_COOKIE, visit.id, { ...options, maxAge: VISIT_SECONDS });
    return visit;
  }

  /**
   * Returns the program that waits with the code, or why there is none. Wrong codes count against the address they come
   * from.
   */
  async function requestOf(request: FastifyRequest, code: string): Promise<DeviceRequest | string> {
    const wait = wrongCodes.waitSeconds(request.ip);
    if (wait > 0) return `Too many wrong codes. Try again in ${wait} seconds.`;
    const found = await requests.find(code);
    if (found !== undefined) return found;
    wrongCodes.take(request.ip);
    return UNKNOWN_CODE;
  }

  function showCode(reply: FastifyReply, visit: Visit, code: string, error?: string) {
    return send(reply.code(error === undefined ? 200 : 400), codePage({ token: visits.formToken(visit), code, error }));
  }

  function showWho(reply: FastifyReply, visit: Visit, code: string, error?: string, name = "") {
    const form = { token: visits.formToken(visit), code, error };
    if (error !== undefined) reply.code(400);
    return outside === undefined
      ? showPassword(reply, { ...form, name })
      : send(reply, outsidePage({ ...form, issuer: outside.name }));
  }

  /** Begins a new visit: a cookie from before is void. */
  async function goOn(request: FastifyRequest, reply: FastifyReply, account: Account, code: string) {
    const signedIn = setVisit(reply, visits.begin(account));
    const waiting = await requestOf(request, code);
    return typeof waiting === "string" ? showCode(reply, signedIn, code, waiting) : showNext(reply, signedIn, waiting);
  }

  /** The error of an approval, and the choices made. */
  type Again = Required<Pick<ApprovalPage, "error" | "chosen">>;

  /** Shows the next page of a visit with this code. */
  function showNext(reply: FastifyReply, visit: Visit, waiting: DeviceRequest, again?: Again) {
    const token = visits.formToken(visit);
    const { code, application, scopes } = waiting;
    if (visit.account === undefined) return showWho(reply, visit, code);
    const { id, name: account } = visit.account;
    const workspaces = workspacesOf(id);
    if (again !== undefined) reply.code(400);
    return send(reply, approvalPage({ token, code, application, account, scopes, workspaces, ...again }));
  }

  interface Submitted {
    readonly visit: Visit;
    readonly fields: Form;
  }

  /** Returns the values of a form from a page of this visit; otherwise sends the first page again. */
  function submitted(request: FastifyRequest, reply: FastifyReply): Submitted | undefined {
    const visit = visitOf(request);
    const read = form.safeParse(request.body ?? {});
    const site = request.headers["sec-fetch-site"];
    const isOurs = site === undefined || site === "same-origin";
    if (read.success && isOurs && visit !== undefined && visits.isFormToken(visit, read.data.token)) {
      return { visit, fields: read.data };
    }
    // No cookie is set here. A form of another site brings no cookie; a new one would end the visit of the person who
    // was lured there.
    if (visit === undefined || !isOurs) void send(reply.code(400), refusalPage("Try once more", STALE_FORM));
    else void showCode(reply, visit, read.success ? read.data.code : "", STALE_FORM);
    return undefined;
  }

  app.get(STYLE_PATH, (_request, reply) => reply.type("text/css; charset=utf-8").send(STYLE));

  app.get<{ Querystring: { user_code?: unknown } }>("/sign-in", async (request, reply) => {
    const visit = visitOf(request) ?? setVisit(reply, visits.begin(undefined));
    const { user_code: code } = request.query;
    if (typeof code !== "string" || code === "") return showCode(reply, visit, "");
    const waiting = await requestOf(request, code);
    return typeof waiting === "string" ? showCode(reply, visit, code, waiting) : showNext(reply, visit, waiting);
  });

  app.post("/sign-in", async (request, reply) => {
    const given = submitted(request, reply);
    if (given === undefined) return reply;
    const { visit, fields } = given;
    const waiting = await requestOf(request, fields.code);
    return typeof waiting === "string" ? showCode(reply, visit, fields.code, waiting) : showNext(reply, visit, waiting);
  });

  app.post("/sign-in/password", async (request, reply) => {
    const given = submitted(request, reply);
    if (given === undefined) return reply;
    const { visit, fields } = given;
    const { code, name, password } = fields;
    const again = (error: string) => showWho(reply, visit, code, error, name);
    if (outside !== undefined) return again(`Sign in at ${outside.name}.`);
    const wait = Math.max(wrongPasswords.waitSeconds(name), passwords.waitSeconds("all"));
    if (wait > 0) return again(`Too many tries. Try again in ${wait} seconds.`);
    // The try is counted before the password is checked: many tries at once are many tries.
    passwords.take("all");
    wrongPasswords.take(name);
    const account = await store.accounts.checkPassword(name, password);
    if (account === undefined) return again("There is no such account with this password.");
    wrongPasswords.forget(name);
    visits.end(visit);
    return goOn(request, reply, account, code);
  });

  if (outside !== undefined) {
    // Lax: the return is a navigation from the site of the issuer to this one.
    const cookieOptions = { path: "/sign-in/outside", httpOnly: true, sameSite: "lax", secure: isSecure } as const;

    app.post("/sign-in/outside", async (request, reply) => {
      const given = submitted(request, reply);
      if (given === undefined) return reply;
      const { code } = given.fields;
      const way = await outside.begin(code);
      if (way === undefined)
        return showWho(reply, given.visit, code, `${outside.name} does not answer. Try again later.`);
      reply.setCookie(OUTSIDE_COOKIE, way.cookie, { ...cookieOptions, maxAge: OUTSIDE_SECONDS });
      // This is no redirect: the forms of this page may lead only to this site.
      return send(reply.header("refresh", `0; url=${way.address}`), leavingPage(outside.name, way.address));
    });

    app.get("/sign-in/outside", async (request, reply) => {
      const back = await outside.finish(request.cookies[OUTSIDE_COOKIE], request.url.split("?")[1] ?? "");
      reply.clearCookie(OUTSIDE_COOKIE, cookieOptions);
      if (back !== undefined) return goOn(request, reply, back.account, back.code);
      const why = `${outside.name} did not say who you are, or you began in another browser.`;
      return send(reply.code(400), refusalPage("You are not signed in", why));
    });
  }

  app.post("/sign-in/leave", async (request, reply) => {
    const given = submitted(request, reply);
    if (given === undefined) return reply;
    visits.end(given.visit);
    const visit = setVisit(reply, visits.begin(undefined));
    const waiting = await requestOf(request, given.fields.code);
    return typeof waiting === "string" ? showCode(reply, visit, "", waiting) : showNext(reply, visit, waiting);
  });

  app.post("/sign-in/approval", async (request, reply) => {
    const given = submitted(request, reply);
    if (given === undefined) return reply;
    const { visit, fields } = given;
    const waiting = await requestOf(request, fields.code);
    if (typeof waiting === "string") return showCode(reply, visit, fields.code, waiting);
    const { account } = visit;
    if (account === undefined) return showNext(reply, visit, waiting);
    const late = () => showCode(reply, visit, "", UNKNOWN_CODE);
    if (fields.decision === "deny") {
      return (await waiting.deny()) ? send(reply, donePage(false, waiting.application)) : late();
    }
    const scopes = [fields.scope ?? []].flat().filter(isScope);
    const workspaces = workspacesOf(account.id);
    const workspace = workspaces.find(({ id }) => id === fields.workspace)?.id;
    const again = (error: string) =>
      showNext(reply, visit, waiting, { error, chosen: { scopes, workspace: fields.workspace } });
    if (fields.decision !== "approve" || (fields.workspace !== "" && workspace === undefined)) {
      return again("Choose one of the workspaces, then approve or deny.");
    }
    if (scopes.length === 0) return again("Leave at least one thing it may do, or deny.");
    return (await waiting.approve({ account, scopes, workspace }))
      ? send(reply, donePage(true, waiting.application))
      : late();
  });

  return app;
}
