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
    components: { schemas: Record<string, unknown> };
  };
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const text = JSON.stringify(document);
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
  const known = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
  expect(references.length).toBeGreaterThan(20);
  expect(known).toEqual(expect.arrayContaining([...new Set(references)]));
  expect(text).not.toContain('"$defs"');
  expect(text).not.toContain('"$schema"');
});
