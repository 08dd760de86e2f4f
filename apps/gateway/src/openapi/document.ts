import { z } from "zod";
import { problemType } from "../http/problem.ts";
import { type AnswerSpec, type AnyRoute, tags } from "../http/route.ts";
import { problem } from "../schemas/problem.ts";
import { inputs, outputs } from "../schemas/registry.ts";
import { refusalComponents, refusalsOf } from "./refusals.ts";

type Json = Record<string, unknown>;

export const version = "0.1.0";
const reference = (id: string) => `#/components/schemas/${id}`;

/** The OpenAPI 3.1 document of these routes, from the same schemas that validate requests. */
export function openApiDocument(routes: readonly AnyRoute[]): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:([A-Za-z]+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Berth",
      version,
      description: "Runs AI agents' commands in isolated per-tenant sandboxes.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The gateway that serves this document" }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "An admin key, or a tenant's" },
      },
      responses: refusalComponents(schemaOf(problem, "output")),
      schemas: { ...named(inputs, "input"), ...named(outputs, "output") },
    },
  };
}

function operation(route: AnyRoute): Json {
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    ...(route.about === undefined ? {} : { description: route.about }),
    ...(route.access === "open" ? { security: [] } : {}),
    "x-access": route.access,
    parameters: [
      ...parameters("path", route.params),
      ...parameters("query", route.query),
      ...parameters("header", route.headers),
    ],
    ...requestBody(route),
    responses: {
      ...refusalsOf(route),
      ...Object.fromEntries(
        Object.entries(route.answers as Record<string, AnswerSpec>).map(([status, answer]) => [
          status,
          response(answer),
        ]),
      ),
      default: {
        description: "It failed; `code` names the reason",
        content: { [problemType]: { schema: schemaOf(problem, "output") } },
      },
    },
  };
}

function operationId({ method, path }: AnyRoute): string {
  const words = path.split(/[/:_.]+/).filter((word) => word !== "" && word !== "v1");
  return [method.toLowerCase(), ...(words.length === 0 ? ["index"] : words)]
    .map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join("");
}

function requestBody({ body, raw }: AnyRoute): Json {
  if (raw) {
    const content = Object.fromEntries(
      raw.types.map((type: string) => [
        type,
        body && type === "application/json" ? { schema: schemaOf(body, "input") } : {},
      ]),
    );
    return { requestBody: { required: true, description: raw.about, content } };
  }
  if (!body) return {};
  return {
    requestBody: {
      required: !body.safeParse(undefined).success,
      content: { "application/json": { schema: schemaOf(body, "input") } },
    },
  };
}

function response({ about, schema, type }: AnswerSpec): Json {
  if (!schema && type === undefined) return { description: about };
  const content = schema
    ? { [type ?? "application/json"]: { schema: schemaOf(schema, "output") } }
    : { [type ?? "application/octet-stream"]: {} };
  return { description: about, content };
}

function parameters(place: "path" | "query" | "header", schema: z.ZodType | undefined): Json[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = schemaOf(schema, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }));
}

/** Turns named schemas into references, at any depth. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const registry = io === "input" ? inputs : outputs;
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: reference(id) };
  const made = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    metadata: registry,
    override: described,
  });
  const { $defs: _, ...own } = cleaned(made as Json);
  return JSON.parse(JSON.stringify(own).replaceAll('"#/$defs/', `"${reference("")}`));
}

function named(registry: typeof inputs, io: "input" | "output"): Json {
  const { schemas } = z.toJSONSchema(registry, {
    io,
    unrepresentable: "any",
    uri: reference,
    override: described,
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, cleaned(schema as Json)]));
}

/** The names are in our own registry, so texts from `describe` must be copied from zod's global one. */
function described({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: object }): void {
  const description = z.globalRegistry.get(zodSchema)?.description;
  if (description !== undefined) Object.assign(jsonSchema, { description });
}

/** Drops `$schema`, `$id` and `id`: the first two mean nothing inside a document, and readers would take `id` for one. */
function cleaned(schema: Json): Json {
  const { $schema: _, $id: __, id: ___, ...rest } = schema;
  return rest;
}
