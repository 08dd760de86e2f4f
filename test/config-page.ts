import type { z } from "zod";
import { environment as engineProxy } from "../apps/engine-proxy/src/config.ts";
import { environment as gateway } from "../apps/gateway/src/config.ts";
import { environment as worker } from "../apps/worker/src/config.ts";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

/**
 * docs/configuration.md, made from the apps' schemas. `node --conditions=@berth/source test/config-page.ts > docs/configuration.md`
 * writes it.
 */
export function configPage(): string {
  return wrappedMarkdown(`# Configuration

Each app is configured by its environment; an empty variable counts as absent. All problems are reported together, with exit code 78.
This page is made from the schemas in \`apps/*/src/config.ts\`, and a test keeps them equal. What a sandbox is like
is a [profile](profiles.md).

## Worker

${table(worker)}

The file that BERTH_CONFIG names is YAML or JSON: the same names, and \`profiles\` by name. [Profiles](profiles.md) lists their
fields. A job may ask for one by name if its tenant was [granted](operations.md#grants) it:

\`\`\`yaml
BERTH_MAX_SANDBOXES: 16
profiles:
  small: { limits: { memoryBytes: 128m } }
\`\`\`

## Gateway

${table(gateway)}

## Engine proxy

See [deploy.md](deploy.md#the-engines-socket).

${table(engineProxy)}
`);
}

function table(schema: z.ZodObject): string {
  const rows = Object.entries(schema.shape).map(
    ([name, field]) =>
      `| \`${name}\` | ${ofTheMachine.has(name) ? "" : shownDefault(field as z.ZodType)} | ${(field as z.ZodType).description ?? ""} |`,
  );
  return ["| variable | default | meaning |", "|---|---|---|", ...rows].join("\n");
}

/** Their defaults are the host's name. */
const ofTheMachine = new Set(["BERTH_WORKER_ID", "BERTH_HOST"]);

/** What an absent variable comes to. */
function shownDefault(field: z.ZodType): string {
  for (let part = field as unknown; ; ) {
    const { def } = part as {
      def: { defaultValue?: unknown; innerType?: unknown; in?: unknown; type: string };
    };
    if (def.type === "default") return `\`${JSON.stringify(def.defaultValue).replaceAll('"', "")}\``;
    if (def.type === "prefault") return typeof def.defaultValue === "string" ? `\`${def.defaultValue}\`` : "";
    part = def.innerType ?? def.in;
    if (part === undefined) return "";
  }
}

if (import.meta.main) process.stdout.write(configPage());
