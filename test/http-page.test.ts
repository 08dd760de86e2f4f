import { readFile } from "node:fs/promises";
import { describedRoutes, openApiDocument } from "@berth/gateway";
import { expect, test } from "vitest";
import { httpPage } from "./http-page.ts";

test("docs/http.md says what the gateway's routes say", async () => {
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
