import { z } from "zod";
import { agentName, profileName, tenantId } from "./ids.ts";

const form =
  "a layer is fleet, profile.NAME, tenant.ID or agent.TENANT.NAME, with a name that has a dot in double quotes";
/** A quoted name is a JSON string. */
const twoNames = /^("(?:[^"\\]|\\.)*"|[^".]+)\.("(?:[^"\\]|\\.)*"|[^".]+)$/;
/** Room for two names of 255 bytes, fully escaped. */
const longest = 4_096;

/** A live layer in Redis: `fleet`, `profile.NAME`, `tenant.ID` or `agent.TENANT.NAME`. Given names become ids. */
export const layerId = z
  .string()
  .transform((text, context) => {
    const id = idOf(text.slice(0, longest));
    if (id !== undefined) return id;
    context.addIssue({ code: "custom", message: form });
    return z.NEVER;
  })
  .brand<"LayerId">();
export type LayerId = z.infer<typeof layerId>;

/** Validates it and leaves it as written. */
export const givenLayer = z.string().refine((text) => layerId.safeParse(text).success, { error: form });

/** The layer's tenant, as written; undefined for the operator's layers. */
export function tenantInLayer(text: string): string | undefined {
  const { kind, rest } = split(text);
  if (kind === "tenant") return nameIn(rest);
  return kind === "agent" ? nameIn(twoNames.exec(rest)?.[1] ?? "") : undefined;
}

function split(text: string): { readonly kind: string; readonly rest: string } {
  const dot = text.indexOf(".");
  return dot === -1 ? { kind: text, rest: "" } : { kind: text.slice(0, dot), rest: text.slice(dot + 1) };
}

function idOf(text: string): string | undefined {
  const { kind, rest } = split(text);
  switch (kind) {
    case "fleet":
      return text === "fleet" ? text : undefined;
    case "profile":
      return profileName.safeParse(rest).success ? text : undefined;
    case "tenant": {
      const tenant = idIn(tenantId, rest);
      return tenant && `tenant.${tenant}`;
    }
    case "agent": {
      const [, first = "", second = ""] = twoNames.exec(rest) ?? [];
      const [tenant, agent] = [idIn(tenantId, first), idIn(agentName, second)];
      return tenant && agent && `agent.${tenant}.${agent}`;
    }
    default:
      return undefined;
  }
}

function idIn(schema: typeof tenantId | typeof agentName, written: string): string | undefined {
  return schema.safeParse(nameIn(written)).data;
}

function nameIn(written: string): string {
  if (!written.startsWith('"')) return written;
  try {
    const name: unknown = JSON.parse(written);
    return typeof name === "string" ? name : written;
  } catch {
    return written;
  }
}
