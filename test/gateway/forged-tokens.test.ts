/** Tokens that somebody made who has no key: each is 401, whichever way the token asks to be checked. */
import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { SCOPES } from "../../src/contract/scopes.ts";
import type { Account } from "../../src/gateway/accounts/index.ts";
import { accountToken, ISSUER, newAccount } from "../support/account-token.ts";
import { createTestCore, type TestCore } from "../support/gateway-core.ts";

let core: TestCore;
let ada: Account;
/** The gateway's own, which signs. */
let ours: { readonly private: KeyObject; readonly public: KeyObject; readonly kid: string };
let header: Record<string, unknown>;
let claims: Record<string, unknown>;
const theirs = generateKeyPairSync("ec", { namedCurve: "P-256" });

beforeEach(() => {
  core = createTestCore();
  ada = newAccount(core.accounts, "ada");
  core.accounts.accounts.setRole(ada.id, core.workspace.id, "owner");
  const [head, payload] = accountToken(core.accounts, core.clock, ada).split(".");
  const read = (part = "") => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
  header = read(head);
  claims = read(payload);
  const [key] = core.accounts.keys.all();
  if (key === undefined) throw new Error("There is no key.");
  const own = createPrivateKey({ key: { ...key }, format: "jwk" });
  ours = { private: own, public: createPublicKey(own), kid: key.kid };
});

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
type Signer = (text: string) => string;
const by =
  (key: KeyObject): Signer =>
  (text) =>
    sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }).toString("base64url");
const hmac =
  (secret: string | Buffer): Signer =>
  (text) =>
    createHmac("sha256", secret).update(text).digest("base64url");

function issue(head: object, body: object, signer: Signer): string {
  const text = `${base64(head)}.${base64(body)}`;
  return `${text}.${signer(text)}`;
}

async function statusOf(token: string): Promise<number> {
  const query = { path: "/", workspace: core.workspace.id };
  return (await core.call("GET", "/v1/nodes", { token, query })).status;
}

/** A token of the command line's kind says nothing of an account, and counts as an owner. */
const commandLine = () => ({ scope: SCOPES.join(" "), iat: claims.iat, exp: claims.exp, jti: "1" });

test("what is forged below is good when it is not", async () => {
  expect(await statusOf(issue(header, claims, by(ours.private)))).toBe(200);
  // The secret of the tests' gateway.
  expect(await statusOf(issue({ alg: "HS256", typ: "JWT" }, commandLine(), hmac(Buffer.alloc(32, 7))))).toBe(200);
});

describe.each([
  ["a sign-in's", () => claims],
  ["the command line's", () => commandLine()],
] as const)("claims as %s", (_, body) => {
  test.each(["none", "None", "NONE", "nOnE", "", "HS256", "ES256"])(
    "with the algorithm %j and no signature",
    async (alg) => {
      for (const signer of [() => "", () => "AAAA", () => Buffer.alloc(64).toString("base64url")]) {
        for (const typ of ["at+jwt", "JWT"])
          expect(await statusOf(issue({ ...header, alg, typ }, body(), signer))).toBe(401);
      }
    },
  );

  test("with the public key as a secret", async () => {
    const jwk = ours.public.export({ format: "jwk" });
    const pem = ours.public.export({ format: "pem", type: "spki" }).toString();
    const secrets = [
      pem,
      pem.trim(),
      ours.public.export({ format: "der", type: "spki" }),
      JSON.stringify(jwk),
      ...[jwk.x, jwk.y].flatMap((part = "") => [part, Buffer.from(part, "base64url")]),
      ours.kid,
      "",
      "null",
      Buffer.alloc(32),
    ];
    for (const secret of secrets) {
      for (const head of [{ alg: "HS256" }, { ...header, alg: "HS256" }, { ...header, alg: "HS256", typ: "JWT" }]) {
        expect(await statusOf(issue(head, body(), hmac(secret)))).toBe(401);
      }
    }
  });

  test("with a key of their own, however it is offered", async () => {
    const jwk = theirs.publicKey.export({ format: "jwk" });
    const offers: object[] = [
      {},
      { jwk },
      { kid: undefined, jwk },
      { jku: "http://evil.example/jwks" },
      { x5u: "http://evil.example/cert" },
      { x5c: [theirs.publicKey.export({ format: "der", type: "spki" }).toString("base64")] },
      { crit: ["exp"] },
      { alg: "ES384" },
      { alg: "RS256" },
      ...[
        "",
        "other",
        "../../../../dev/null",
        "/dev/null",
        "' OR '1'='1",
        "' UNION SELECT 1 --",
        "__proto__",
        0,
        null,
      ].map((kid) => ({ kid })),
      { kid: [ours.kid] },
      { kid: { toString: ours.kid } },
    ];
    for (const offer of offers) {
      const token = issue({ ...header, ...offer }, body(), by(theirs.privateKey));
      expect([offer, await statusOf(token)]).toEqual([offer, 401]);
    }
  });
});

describe("what our key did sign, and not for this", () => {
  const wrong: Readonly<Record<string, () => [head: object, body: object]>> = {
    "a token of another issuer": () => [header, { ...claims, iss: "https://elsewhere.example" }],
    "one for another audience": () => [header, { ...claims, aud: ["https://elsewhere.example"] }],
    "one for an audience that begins alike": () => [header, { ...claims, aud: `${ISSUER}.evil.example` }],
    "an identity token": () => [{ ...header, typ: "JWT" }, claims],
    "one without a type": () => [{ ...header, typ: undefined }, claims],
    "one with words that must be understood": () => [{ ...header, crit: ["exp"], exp: 1 }, claims],
    "one that has expired": () => [header, { ...claims, exp: Number(claims.iat) - 1 }],
    "one without an end": () => [header, { ...claims, exp: undefined }],
    "one whose end is no number": () => [header, { ...claims, exp: "9999999999" }],
    "one that is not good yet": () => [header, { ...claims, nbf: Number(claims.exp) }],
    "one of no sign-in": () => [header, { ...claims, login: undefined }],
    "one of a sign-in that has ended": () => [header, { ...claims, login: "another" }],
    "one of an account that is gone": () => [header, { ...claims, sub: "another" }],
    "one for a program that is none of ours": () => [header, { ...claims, client_id: undefined }],
    "one of the command line's kind": () => [header, commandLine()],
  };

  test.each(Object.entries(wrong))("%s", async (_, make) => {
    const [head, body] = make();
    expect(await statusOf(issue(head, body, by(ours.private)))).toBe(401);
  });

  test("a key that was replaced by force signs nothing that is good", async () => {
    const token = issue(header, claims, by(ours.private));
    core.accounts.keys.replaceAll();
    expect(await statusOf(token)).toBe(401);
  });
});
