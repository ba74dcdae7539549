/** HTML as text: each value of a template is escaped, unless it is HTML already. */
export interface Html {
  readonly html: string;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function textOf(value: Html | readonly Html[] | string): string {
  if (typeof value === "string") return value.replace(/[&<>"']/g, (letter) => ESCAPES[letter] ?? letter);
  return "html" in value ? value.html : value.map(({ html }) => html).join("");
}

export function html(parts: TemplateStringsArray, ...values: (Html | readonly Html[] | string)[]): Html {
  return { html: parts.map((part, index) => (index === 0 ? part : textOf(values[index - 1] ?? "") + part)).join("") };
}
