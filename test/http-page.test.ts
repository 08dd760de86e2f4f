import { readFile } from "node:fs/promises";
import { describedRoutes, openApiDocument } from "@berth/gateway";
import { expect, test } from "vitest";
import { httpPage } from "./http-page.ts";

test("docs/http.md equals the gateway's routes", async () => {
  expect(await readFile(new URL("../docs/http.md", import.meta.url), "utf8")).toBe(httpPage());
});

test("the OpenAPI document names every operation once and leads nowhere that is not there", () => {
  const document = openApiDocument(describedRoutes()) as {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: { schemas: Record<string, unknown>; responses: Record<string, unknown> };
  };
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const text = JSON.stringify(document);
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
  const known = (["schemas", "responses"] as const).flatMap((kind) =>
    Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
  );
  expect(references.length).toBeGreaterThan(20);
  expect(known).toEqual(expect.arrayContaining([...new Set(references)]));
  expect(text).not.toContain('"$defs"');
  expect(text).not.toContain('"$schema"');
});

test("the OpenAPI document has what linters ask for: servers, described tags, and refusals of each operation", () => {
  const document = openApiDocument(describedRoutes()) as {
    servers: { url: string }[];
    tags: { name: string; description: string }[];
    paths: Record<string, Record<string, { tags: string[]; summary: string; responses: object }>>;
  };
  expect(document.servers).toEqual([{ url: "/", description: expect.any(String) }]);
  for (const { name, description } of document.tags) expect(description.length, name).toBeGreaterThan(20);
  const tags = document.tags.map(({ name }) => name);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const what = `${method} ${path}`;
      expect(tags, what).toEqual(expect.arrayContaining(operation.tags));
      expect(operation.summary, what).not.toBe("");
      const statuses = Object.keys(operation.responses);
      expect(
        statuses.some((status) => status.startsWith("2")),
        what,
      ).toBe(true);
      expect(
        statuses.some((status) => status.startsWith("4")),
        what,
      ).toBe(true);
    }
  }
});

test("docs/http.md has every field of every request, with its bounds and default", () => {
  const page = httpPage();
  const fields = page.slice(page.indexOf("## Fields of requests"));
  for (const row of [
    "| `argv` | list of string, at most 4096 | an argument vector, run without a shell",
    "| `limits.timeoutMs` | integer from 0 to 86400000 | wall clock",
    "| `retry.attempts` | integer from 1 to 20 | needed; runs in all |",
    "| `request` | [JobRequest](#jobrequest) | needed |",
  ])
    expect(fields).toContain(row);
});

/** Fields of a schema, however deep, as paths such as `outcome.afterMs`. */
function fieldsOf(
  schemas: Record<string, unknown>,
  schema: unknown,
  path = "",
  seen: string[] = [],
): string[] {
  const {
    $ref,
    properties = {},
    ...rest
  } = (schema ?? {}) as {
    $ref?: string;
    properties?: Record<string, unknown>;
    items?: unknown;
    anyOf?: unknown[];
    oneOf?: unknown[];
  };
  if ($ref !== undefined) {
    const name = $ref.split("/").at(-1) ?? "";
    return seen.includes(name) ? [] : fieldsOf(schemas, schemas[name], path, [...seen, name]);
  }
  const own = Object.entries(properties).flatMap(([name, inner]) => [
    `${path}${name}`,
    ...fieldsOf(schemas, inner, `${path}${name}.`, seen),
  ]);
  const others = [rest.items, ...(rest.anyOf ?? []), ...(rest.oneOf ?? [])].filter(
    (one) => one !== undefined,
  );
  return [...own, ...others.flatMap((one) => fieldsOf(schemas, one, path, seen))];
}

test("only /v1/sandbox/* has fields in snake_case, and camelCase inside it is where docs/http.md says", () => {
  const document = openApiDocument(describedRoutes()) as {
    paths: Record<string, Record<string, Record<string, unknown>>>;
    components: { schemas: Record<string, unknown> };
  };
  const { schemas } = document.components;
  const camel = new Set<string>();
  const snake = new Set<string>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { requestBody, responses } of Object.values(methods)) {
      const answers = Object.entries((responses ?? {}) as Record<string, object>);
      const bodies = [
        requestBody,
        ...answers.filter(([status]) => status !== "default").map(([, one]) => one),
      ];
      for (const body of bodies) {
        const { content = {} } = (body ?? {}) as { content?: Record<string, { schema?: unknown }> };
        const fields = Object.values(content).flatMap(({ schema }) => fieldsOf(schemas, schema));
        if (path.startsWith("/v1/sandbox"))
          for (const field of fields.filter((one) => /[A-Z]/.test(one))) camel.add(field);
        else for (const field of fields.filter((one) => one.includes("_"))) snake.add(`${path}: ${field}`);
      }
    }
  }
  const shared = ["outcome.afterMs", "outcome.limitBytes", "artifacts.expiresAtMs", "persisted.expiresAtMs"];
  expect([...camel].toSorted()).toEqual(shared.toSorted());
  expect(snake).toEqual(new Set());
});
