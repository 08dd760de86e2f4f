import { z } from "zod";

/** Named schemas of the OpenAPI document. Input and output are separate, because defaults make fields optional only in input. */
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
