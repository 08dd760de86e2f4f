import { describedRoutes, openApiDocument } from "@berth/gateway";
import { fieldSection, fieldTable, type JsonSchema, nameIn, typeText } from "./http-fields.ts";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly "x-access": string;
  readonly parameters: readonly {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: JsonSchema;
  }[];
  readonly requestBody?: {
    readonly description?: string;
    readonly content: Readonly<Record<string, { schema?: JsonSchema }>>;
  };
  /** Without a description: a reference to an answer that many routes share. */
  readonly responses: Readonly<
    Record<string, { description?: string; content?: Readonly<Record<string, { schema?: object }>> }>
  >;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

const who: Readonly<Record<string, string>> = { open: "anyone", key: "any key", admin: "an admin key" };

/** docs/http.md, made from the routes. `node --conditions=@berth/source test/http-page.ts > docs/http.md` writes it. */
export function httpPage(): string {
  const { paths, components } = openApiDocument(describedRoutes()) as unknown as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const groups = [...Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "")];
  return wrappedMarkdown(`# Berth over HTTP

This page is made from the gateway's routes, and a test keeps the two equal. A running gateway has the same
with every schema at \`/docs\`, and as OpenAPI 3.1 at \`/openapi.json\`.

\`\`\`sh
curl http://127.0.0.1:8080/v1/jobs?wait=30 -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"tenant": "acme", "request": {"kind": "exec", "command": "echo 42"}}'
curl -N http://127.0.0.1:8080/v1/jobs/$ID/events -H "Authorization: Bearer $KEY"     # live, resumable with Last-Event-ID
\`\`\`

- **Keys**: \`Authorization: Bearer …\`. An admin key (\`BERTH_ADMIN_KEY\`, or made at \`/v1/keys\`) may do
  everything. A tenant key sees and changes only its tenant, and need not name it: to any other key a job,
  batch, schedule or artifact does not exist.
- **Without keys**: until the first key is made, the gateway listens on loopback only. It then refuses other
  host names, pages of another origin, and requests that came through a proxy. It stays closed when the last
  key is revoked or expires; \`BERTH_ADMIN_KEY\` opens it again.
- **Errors** are \`application/problem+json\` with \`code\`, \`detail\`, each of the \`problems\`, and the
  \`requestId\` that is in the log. A mistake of the caller's is a 4xx. 429 and most 503 answers have a
  \`Retry-After\`.
- **Ids** of jobs and schedules that a tenant key submits are its tenant's own: another tenant may use the same
  ones. To an admin key they are \`<tenant>.<id>\`. Ids that an admin key chooses are the whole fleet's.
- **Profiles and pools** other than \`default\` must be [granted](operations.md#grants) to the tenant and named
  when its key is made.
- **Idempotency**: with an \`Idempotency-Key\` the same request is carried out once, for a day.
- **Which sandbox**: \`/v1/jobs\`, \`berth exec\` and the TypeScript client use one sandbox for all jobs of a
  tenant (scope \`tenant\`, key \`acme\`). \`/v1/sandbox/*\` gives each \`session_id\` a sandbox of its own (scope
  \`session\`, key \`acme.s.main\`). Files of one are not in the other. To use the sandbox of \`/v1/sandbox/*\`
  elsewhere, name its scope and session: \`berth exec acme --scope session --session main -- ls\`, or
  \`"scope": "session", "session": "main"\` in the body of \`/v1/jobs\`. To use the tenant's own sandbox over HTTP,
  use \`/v1/jobs\`.
- **Names of fields** are in camelCase, except in \`/v1/sandbox/*\`. Those calls keep the interface of an existing
  API for code sandboxes that agents already call, so their fields are in snake_case (\`tenant_id\`,
  \`exit_code\`). What they share with all other routes stays in camelCase: what is inside \`outcome\` (\`afterMs\`,
  \`limitBytes\`), the entries of \`artifacts\` and \`persisted\` (\`expiresAtMs\`), and problem documents
  (\`requestId\`, \`jobId\`).
- **Text for agents**: a result's \`text\` is a command's output, both streams in the order they were written, cut
  to the profile's \`shownBytes\`. Below it is how the command ended: \`[exit 3]\`, \`[timed out after 30s]\`,
  \`[out of memory: …]\`. A job that was refused has one line, \`ERR: …\`. With \`"block": true\`,
  \`/v1/sandbox/bash\` and \`execute\` put the text between \`[/exec …]\` and \`[END EXEC]\`. Output may contain such
  lines, too: a program should use \`outcome\`.
- **Lost answers**: a submission that fails because of Redis names the job in \`jobId\`. \`accepted\` is \`no\` if
  the fleet does not have the job, and \`unknown\` if it may have it. Submit it again with that \`id\`: it runs once.
- **Bodies** are JSON in UTF-8, of up to \`BERTH_GATEWAY_BODY_BYTES\`; a batch may be a stream of lines without end.
  One job has at most 100,000 JSON values.

${groups.map(([tag, those]) => `## ${tag}\n\n${those.map(section).join("\n")}`).join("\n")}
## Fields of requests

A field that is not listed is refused. One without "needed" and without a default may be left out.

${requestSchemas(operations, components.schemas)
  .map((name) => fieldSection(name, components.schemas[name] ?? {}))
  .join("\n")}`);
}

/** Names of the schemas in request bodies, at any depth. */
function requestSchemas(
  operations: readonly { readonly operation: Operation }[],
  schemas: Readonly<Record<string, JsonSchema>>,
): string[] {
  const found = new Set<string>();
  const look = (value: unknown) => {
    for (const [, reference = ""] of JSON.stringify(value).matchAll(/"\$ref":"([^"]+)"/g)) {
      const name = nameIn(reference);
      if (found.has(name)) continue;
      found.add(name);
      look(schemas[name]);
    }
  };
  for (const { operation } of operations) look(operation.requestBody ?? {});
  return [...found];
}

function section({
  path,
  method,
  operation,
}: {
  path: string;
  method: string;
  operation: Operation;
}): string {
  const { summary, description, parameters, requestBody, responses } = operation;
  const lines = [
    `### \`${method} ${path}\``,
    "",
    `${summary}. For ${who[operation["x-access"]]}.${description === undefined ? "" : ` ${description}`}`,
    "",
  ];
  for (const one of parameters) {
    const about = one.description === undefined ? "" : `: ${one.description}`;
    const fallback =
      one.schema.default === undefined ? "" : `, default \`${JSON.stringify(one.schema.default)}\``;
    const what = `${one.in}, ${typeText(one.schema)}${fallback}${one.required ? ", needed" : ""}`;
    lines.push(`- \`${one.name}\` (${what})${about}`);
  }
  for (const [type, { schema }] of Object.entries(requestBody?.content ?? {}))
    lines.push(`- body \`${type}\`${named(schema, linked)}`);
  if (requestBody?.description !== undefined) lines.push(`- ${requestBody.description}`);
  for (const { schema } of Object.values(requestBody?.content ?? {}))
    if (schema?.properties !== undefined) lines.push("", fieldTable(schema), "");
  for (const [status, { description: about, content = {} }] of Object.entries(responses)) {
    if (status === "default" || about === undefined) continue;
    const [[type, { schema }] = ["", {}]] = Object.entries(content);
    lines.push(`- **${status}** ${about}${type === "" ? "" : ` (\`${type}\`${named(schema)})`}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Names of the schemas that it refers to. */
function named(schema: object | undefined, shown = (name: string) => name): string {
  const references = JSON.stringify(schema ?? {}).matchAll(/#\/components\/schemas\/([A-Za-z]+)/g);
  return [...new Set([...references].map(([, name = ""]) => `, ${shown(name)}`))].join("");
}

/** A link to the schema's fields. */
function linked(name: string): string {
  return `[${name}](#${name.toLowerCase()})`;
}

if (import.meta.main) process.stdout.write(httpPage());
