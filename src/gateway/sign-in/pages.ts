/** The pages of a sign-in: plain HTML that needs no JavaScript, on a phone and on a desk. */
import { SCOPE_WORDS } from "../../contract/scope-words.ts";
import type { Scope } from "../../contract/scopes.ts";
import { type Html, html } from "./html.ts";

export const STYLE_PATH = "/sign-in/style.css";

export const STYLE = `
:root { color-scheme: light dark; --line: #d0d5dd; --soft: #667085; --strong: #1d4ed8; --bad: #b42318; --back: #f5f6f8; --card: #fff; --text: #101828; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4252; --soft: #98a2b3; --strong: #6d9bff; --bad: #f97066; --back: #0f131a; --card: #181d27; --text: #e6e9ef; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 28rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.75rem; }
h1 { font-size: 1.35rem; margin: 0 0 .5rem; }
p { margin: .5rem 0 1rem; }
.soft { color: var(--soft); }
.error { color: var(--bad); border-left: 3px solid; padding-left: .75rem; }
.code { font: 600 1.5rem/1.2 ui-monospace, monospace; letter-spacing: .12em; text-align: center; padding: .75rem; border: 1px dashed var(--line); border-radius: 8px; margin: 1rem 0; }
label { display: block; margin: .75rem 0 .25rem; font-weight: 600; }
input[type=text], input[type=password], select { width: 100%; font: inherit; padding: .6rem .7rem; border: 1px solid var(--line); border-radius: 8px; background: transparent; color: inherit; }
select option { color: #101828; }
fieldset { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: .5rem .9rem .8rem; }
legend { font-weight: 600; padding: 0 .3rem; }
fieldset label { display: flex; gap: .6rem; align-items: flex-start; font-weight: 400; margin: .4rem 0; }
fieldset input { margin-top: .35rem; flex: none; }
code { font-size: .8rem; color: var(--soft); overflow-wrap: anywhere; }
.actions { display: flex; gap: .75rem; margin-top: 1.25rem; flex-wrap: wrap; }
button { flex: 1 1 8rem; font: inherit; font-weight: 600; padding: .7rem 1rem; border-radius: 8px; border: 1px solid var(--line); background: transparent; color: inherit; cursor: pointer; }
button.main { background: var(--strong); border-color: var(--strong); color: #fff; }
button:focus-visible, input:focus-visible, select:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
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
  /** Proves that the form is of this visit. */
  readonly token: string;
  /** What was wrong with the last try. */
  readonly error?: string | undefined;
}

const errorOf = ({ error }: FormPage) =>
  error === undefined ? html`` : html`<p class="error" role="alert">${error}</p>`;
const tokenOf = ({ token }: FormPage) => html`<input type="hidden" name="token" value="${token}">`;

/** Which code the program shows. */
export function codePage(form: FormPage & { readonly code: string }): Html {
  return page(
    "Sign in a program",
    html`<h1>Sign in a program</h1>
<p>Type the code that the program shows you.</p>
${errorOf(form)}
<form method="post" action="/sign-in">${tokenOf(form)}
<label for="code">Code</label>
<input id="code" type="text" name="code" value="${form.code}" autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="ABCD-EFGH" required autofocus>
<div class="actions"><button class="main">Continue</button></div>
</form>`,
  );
}

export interface PasswordPage extends FormPage {
  readonly code: string;
  readonly name: string;
  /** Where the person finds the password that `wsfs start` made. Absent: nowhere, or a stranger asks. */
  readonly first?: { readonly account: string; readonly file: string } | undefined;
}

const firstOf = ({ first }: PasswordPage) =>
  first === undefined
    ? html``
    : html`<p class="soft">The account <strong>${first.account}</strong> was made by wsfs start; its password is in <code>${first.file}</code>.</p>`;

/** Who the person is. */
export function passwordPage(form: PasswordPage): Html {
  return page(
    "Sign in",
    html`<h1>Sign in</h1>
<p>To approve a program, say who you are.</p>
${errorOf(form)}
<form method="post" action="/sign-in/password">${tokenOf(form)}
<input type="hidden" name="code" value="${form.code}">
<label for="name">Account</label>
<input id="name" type="text" name="name" value="${form.name}" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus>
<label for="password">Password</label>
<input id="password" type="password" name="password" autocomplete="current-password" required>
<div class="actions"><button class="main">Sign in</button></div>
</form>${firstOf(form)}`,
  );
}

export interface ApprovalPage extends FormPage {
  readonly application: string;
  readonly account: string;
  /** As the program shows it. */
  readonly code: string;
  readonly scopes: readonly Scope[];
  readonly workspaces: readonly { readonly id: string; readonly name: string; readonly role: string }[];
}

/** What the program may do. */
export function approvalPage(form: ApprovalPage): Html {
  const scopes = form.scopes.map(
    (scope) =>
      html`<label><input type="checkbox" name="scope" value="${scope}" checked><span>${SCOPE_WORDS[scope]}<br><code>${scope}</code></span></label>`,
  );
  const workspaces = form.workspaces.map(
    ({ id, name, role }) => html`<option value="${id}">Only ${name} (you are ${role})</option>`,
  );
  return page(
    "Approve a program",
    html`<h1>Let ${form.application} in?</h1>
<p>A program on some machine asks to act as <strong>${form.account}</strong>. Approve it only if you have just started it and it shows this code:</p>
<div class="code">${form.code}</div>
${errorOf(form)}
<form method="post" action="/sign-in/approval">${tokenOf(form)}
<input type="hidden" name="code" value="${form.code}">
<fieldset><legend>It may</legend>${scopes}</fieldset>
<label for="workspace">In</label>
<select id="workspace" name="workspace"><option value="">All workspaces you may use</option>${workspaces}</select>
<div class="actions"><button class="main" name="decision" value="approve">Approve</button>
<button name="decision" value="deny">Deny</button></div>
</form>
<form method="post" action="/sign-in/leave">${tokenOf(form)}<input type="hidden" name="code" value="${form.code}">
<p class="soft">Not ${form.account}?</p><div class="actions"><button>Use another account</button></div></form>`,
  );
}

export function donePage(isApproved: boolean, application: string): Html {
  return isApproved
    ? page("Approved", html`<h1>Approved</h1><p>${application} is signed in. You can close this page.</p>`)
    : page("Denied", html`<h1>Denied</h1><p>${application} was not let in. You can close this page.</p>`);
}

export function refusalPage(title: string, detail: string): Html {
  return page(title, html`<h1>${title}</h1><p>${detail}</p><p><a href="/sign-in">Begin anew</a></p>`);
}
