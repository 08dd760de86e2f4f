import { z } from "zod";

/** Schemas that have a name in the OpenAPI document, apart for what comes in and what goes out: defaults differ. */
export const inputs = z.registry<{ id: string }>();
export const outputs = z.registry<{ id: string }>();

export function input<S extends z.ZodType>(id: string, schema: S): S {
  inputs.add(schema, { id });
  return schema;
}

export function output<S extends z.ZodType>(id: string, schema: S): S {
  outputs.add(schema, { id });
  return schema;
}
