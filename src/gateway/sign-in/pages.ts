/** The pages of a sign-in: plain HTML without JavaScript, for phones and desktops. */
import { SCOPE_WORDS } from "../../contract/scope-words.ts";
import type { Scope } from "../../contract/scopes.ts";
import { type Html, html } from "./html.ts";

export const STYLE_PATH = "/sign-in/style.css";

export const STYLE = `
:root { color-scheme: light dark; --line: #d0d5dd; --edge: #7b8494; --soft: #5d6779; --strong: #1d4ed8; --on-strong: #fff; --bad: #b42318; --back: #f5f6f8; --card: #fff; --text: #101828; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4252; --edge: #7d879a; --soft: #98a2b3; --strong: #7ea6ff; --on-strong: #0b1220; --bad: #f97066; --back: #0f131a; --card: #181d27; --text: #e6e9ef; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 28rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.75rem; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .5rem; }
p { margin: .5rem 0 1rem; }
main > :last-child { margin-bottom: 0; }
strong, .soft { overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .9rem; margin: 0; }
form + .soft { margin-top: 1rem; }
.error { color: var(--bad); border-left: 3px solid; padding-left: .75rem; margin: .25rem 0 .5rem; }
.code { font: 600 1.5rem/1.2 ui-monospace, monospace; letter-spacing: .12em; text-align: center; padding: .75rem; border: 1px dashed var(--edge); border-radius: 8px; margin: 1rem 0; }
label { display: block; margin: .75rem 0 .25rem; font-weight: 600; }
input[type=text], input[type=password], select { width: 100%; font: inherit; padding: .6rem .7rem; border: 1px solid var(--edge); border-radius: 8px; background: var(--card); color: inherit; }
input[aria-invalid] { border-color: var(--bad); }
fieldset { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: .5rem .9rem .8rem; min-width: 0; }
legend { font-weight: 600; padding: 0 .3rem; }
fieldset label { display: flex; gap: .75rem; align-items: flex-start; font-weight: 400; margin: .5rem 0; }
fieldset input { width: 1.5rem; height: 1.5rem; margin: 0; flex: none; accent-color: var(--strong); }
label code { display: block; font-size: .8rem; color: var(--soft); overflow-wrap: anywhere; }
.actions { display: flex; gap: .75rem; margin-top: 1.25rem; flex-wrap: wrap; }
button, .button { flex: 1 1 8rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; padding: .7rem 1rem; border-radius: 8px; border: 1px solid var(--edge); background: transparent; color: inherit; cursor: pointer; }
.main { background: var(--strong); border-color: var(--strong); color: var(--on-strong); }
.other { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: 1rem; }
a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
`;

function page(title: string, body: Html): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · wsfs</title>
<link rel="stylesheet" href="${STYLE_PATH}">
</head>
<body><main>${body}</main></body>
</html>
`;
}

interface FormPage {
  /** Proves that the form belongs to this visit. */
  readonly token: string;
  /** The fault of the last try, shown at its field. */
  readonly error?: string | undefined;
}

const errorOf = ({ error }: FormPage) =>
  error === undefined ? html`` : html`<p class="error" id="error" role="alert">${error}</p>`;
/** Attributes of the field with the error. */
const wrong = ({ error }: FormPage) =>
  error === undefined ? html`` : html` aria-invalid="true" aria-describedby="error"`;
const titleOf = ({ error }: FormPage, title: string) => (error === undefined ? title : `Error: ${title}`);
const tokenOf = ({ token }: FormPage) => html`<input type="hidden" name="token" value="${token}">`;
const focus = html` autofocus`;

/** Asks for the code that the program shows. */
export function codePage(form: FormPage & { readonly code: string }): Html {
  return page(
    titleOf(form, "Sign in a program"),
    html`<h1>Sign in a program</h1>
<p>Type the code that the program shows you. It looks like ABCD-EFGH.</p>
<form method="post" action="/sign-in">${tokenOf(form)}
<label for="code">Code</label>
${errorOf(form)}
<input id="code" type="text" name="code" value="${form.code}" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="64" required autofocus${wrong(form)}>
<div class="actions"><button class="main">Continue</button></div>
</form>`,
  );
}

export interface PasswordPage extends FormPage {
  readonly code: string;
  readonly name: string;
  /** The place of the password that `wsfs start` made. Absent: there is none, or the request comes from a stranger. */
  readonly first?: { readonly account: string; readonly file: string } | undefined;
}

const firstOf = ({ first }: PasswordPage) =>
  first === undefined
    ? html``
    : html`<p class="soft">The account <strong>${first.account}</strong> was made by wsfs start; its password is in <code>${first.file}</code>.</p>`;

/** Asks the person for name and password. */
export function passwordPage(form: PasswordPage): Html {
  const isAgain = form.name !== "";
  return page(
    titleOf(form, "Sign in"),
    html`<h1>Sign in</h1>
<p>A program asks to be let in. Say who you are; on the next page you see what it may do.</p>
<form method="post" action="/sign-in/password">${tokenOf(form)}
<input type="hidden" name="code" value="${form.code}">
<label for="name">Account</label>
<input id="name" type="text" name="name" value="${form.name}" autocomplete="username" autocapitalize="none" spellcheck="false" required${isAgain ? html`` : focus}>
<label for="password">Password</label>
${errorOf(form)}
<input id="password" type="password" name="password" autocomplete="current-password" required${isAgain ? focus : html``}${wrong(form)}>
<div class="actions"><button class="main">Sign in</button></div>
</form>${firstOf(form)}`,
  );
}

/** Asks the person to sign in at an outside issuer. `issuer`: its short name. */
export function outsidePage(form: FormPage & { readonly code: string; readonly issuer: string }): Html {
  return page(
    titleOf(form, "Sign in"),
    html`<h1>Sign in</h1>
<p>A program asks to be let in. Say who you are at <strong>${form.issuer}</strong>; after that you see what the program may do.</p>
<form method="post" action="/sign-in/outside">${tokenOf(form)}
<input type="hidden" name="code" value="${form.code}">
${errorOf(form)}
<div class="actions"><button class="main" autofocus${wrong(form)}>Go to ${form.issuer}</button></div>
</form>`,
  );
}

/** The page between this site and the issuer; a browser goes on by itself. */
export function leavingPage(issuer: string, address: string): Html {
  return page(
    `On to ${issuer}`,
    html`<h1>On to ${issuer}</h1><p>You come back here once you have signed in.</p>
<div class="actions"><a class="button main" href="${address}">Go on</a></div>`,
  );
}

export interface ApprovalPage extends FormPage {
  readonly application: string;
  readonly account: string;
  /** As the program shows it. */
  readonly code: string;
  readonly scopes: readonly Scope[];
  readonly workspaces: readonly { readonly id: string; readonly name: string; readonly role: string }[];
  /** The choices of the last try; absent: everything is chosen. */
  readonly chosen?: { readonly scopes: readonly Scope[]; readonly workspace: string } | undefined;
}

/** Asks the person for the rights of the program. */
export function approvalPage(form: ApprovalPage): Html {
  const { chosen = { scopes: form.scopes, workspace: "" } } = form;
  const scopes = form.scopes.map((scope) => {
    const checked = chosen.scopes.includes(scope) ? html` checked` : html``;
    return html`<label><input type="checkbox" name="scope" value="${scope}"${checked}><span>${SCOPE_WORDS[scope]} <code>${scope}</code></span></label>`;
  });
  const workspaces = form.workspaces.map(({ id, name, role }) => {
    const selected = id === chosen.workspace ? html` selected` : html``;
    return html`<option value="${id}"${selected}>Only ${name} (you are ${role})</option>`;
  });
  return page(
    titleOf(form, "Approve a program"),
    html`<h1>Let ${form.application} in?</h1>
<p>A program on some machine asks to act as <strong>${form.account}</strong>. Approve it only if you have just started it and it shows this code:</p>
<div class="code">${form.code}</div>
<form method="post" action="/sign-in/approval">${tokenOf(form)}
<input type="hidden" name="code" value="${form.code}">
<fieldset${form.error === undefined ? html`` : html` aria-describedby="error"`}><legend>What it may do</legend>
${errorOf(form)}${scopes}</fieldset>
<label for="workspace">Where</label>
<select id="workspace" name="workspace"><option value="">All workspaces you may use</option>${workspaces}</select>
<div class="actions"><button class="main" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button></div>
</form>
<form class="other" method="post" action="/sign-in/leave">${tokenOf(form)}<input type="hidden" name="code" value="${form.code}">
<p class="soft">You are signed in as ${form.account}.</p><div class="actions"><button>Use another account</button></div></form>`,
  );
}

export function donePage(isApproved: boolean, application: string): Html {
  return isApproved
    ? page(
        "Approved",
        html`<h1>Approved</h1><p>${application} will be signed in within a few seconds. You can close this page.</p>`,
      )
    : page("Denied", html`<h1>Denied</h1><p>${application} was not let in. You can close this page.</p>`);
}

export function refusalPage(title: string, detail: string): Html {
  return page(
    title,
    html`<h1>${title}</h1><p>${detail}</p><div class="actions"><a class="button" href="/sign-in">Begin anew</a></div>`,
  );
}
