import { htmlOf } from "../http/small-page.ts";

/** No external resources and no scripts. */
export const docsPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

interface Operation {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly "x-access": string;
  readonly parameters: readonly {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: unknown;
  }[];
  readonly requestBody?: {
    readonly description?: string;
    readonly content: Readonly<Record<string, { schema?: unknown }>>;
  };
  readonly responses: Readonly<
    Record<string, { description?: string; content?: Readonly<Record<string, { schema?: unknown }>> }>
  >;
}

const access: Readonly<Record<string, string>> = {
  open: "anyone",
  key: "any key, for its own tenant",
  admin: "an admin key",
};

/** Renders the OpenAPI document as one page, once. */
export function docsPage(document: unknown): string {
  const { info, paths, components } = document as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const groups = [...Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "")];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${htmlOf(info.title)} API</title><style>${style}</style></head><body>
<header><h1>${htmlOf(info.title)} ${htmlOf(info.version)}</h1><p>${htmlOf(info.description)} The same as
<a href="/openapi.json">OpenAPI</a>.</p>
<nav>${groups.map(([tag]) => `<a href="#${tag}">${tag}</a>`).join(" ")} <a href="#schemas">schemas</a></nav></header>
${groups.map(([tag, those]) => `<h2 id="${tag}">${tag}</h2>${those.map(operationText).join("")}`).join("\n")}
<h2 id="schemas">schemas</h2>
${Object.entries(components.schemas)
  .map(
    ([name, schema]) =>
      `<details id="schema-${name}"><summary><code>${name}</code></summary>${json(schema)}</details>`,
  )
  .join("\n")}
</body></html>`;
}

function operationText({
  path,
  method,
  operation,
}: {
  path: string;
  method: string;
  operation: Operation;
}): string {
  const rows = operation.parameters.map(
    (one) =>
      `<tr><td><code>${htmlOf(one.name)}</code></td><td>${one.in}${one.required ? ", needed" : ""}</td><td>${htmlOf(one.description ?? "")}</td><td>${json(one.schema)}</td></tr>`,
  );
  const body = Object.entries(operation.requestBody?.content ?? {}).map(
    ([type, { schema }]) => `<h4>Body: <code>${htmlOf(type)}</code></h4>${schema ? json(schema) : ""}`,
  );
  // Answers given by reference are the same for many routes.
  const own = Object.entries(operation.responses).filter(([, { description }]) => description !== undefined);
  const answers = own.map(([status, { description, content = {} }]) => {
    const [[type, { schema }] = ["", {} as { schema?: unknown }]] = Object.entries(content);
    return `<tr><td>${status}</td><td>${htmlOf(description ?? "")}</td><td><code>${htmlOf(type)}</code></td><td>${schema ? json(schema) : ""}</td></tr>`;
  });
  return `<details class="operation"><summary><b class="${method}">${method}</b> <code>${htmlOf(path)}</code> <span>${htmlOf(operation.summary)}</span></summary>
<p>${htmlOf(operation.description ?? "")}</p><p>For ${access[operation["x-access"]]}.</p>
${rows.length > 0 ? `<table>${rows.join("")}</table>` : ""}${body.join("")}
<h4>Answers</h4><table>${answers.join("")}</table></details>`;
}

function json(schema: unknown): string {
  const text = htmlOf(JSON.stringify(schema, undefined, 1));
  return `<pre>${text.replaceAll(/#\/components\/schemas\/([A-Za-z]+)/g, '<a href="#schema-$1">$1</a>')}</pre>`;
}

const style = `
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
h2{border-bottom:1px solid #8886;margin-top:2rem}details{border:1px solid #8884;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}
summary{cursor:pointer}summary span{opacity:.7;margin-left:.5rem}summary b{display:inline-block;width:4.5rem}
.GET{color:#2a7ab8}.POST{color:#2e8b57}.PUT{color:#b8860b}.DELETE{color:#b03a3a}
table{border-collapse:collapse;width:100%}td{border-top:1px solid #8883;padding:.3rem .6rem;vertical-align:top}
pre{overflow:auto;margin:.2rem 0;font-size:13px;max-height:30rem}nav a{margin-right:.8rem}`;
