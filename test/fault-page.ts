import { faultCodes, faultTable } from "@berth/protocol";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

/** docs/faults.md, made from the table. `node --conditions=@berth/source test/fault-page.ts > docs/faults.md` writes it. */
export function faultPage(): string {
  const rows = faultCodes.map((code) => {
    const { meaning, retry, operator } = faultTable[code];
    return `| \`${code}\` | ${meaning} | ${retry ? "yes" : "no"} | ${operator} |`;
  });
  return wrappedMarkdown(`# Faults

A fault is a failure of Berth's own machinery. It is thrown, with a code. How a tenant's command ended is an outcome,
never a fault. This page is made from \`packages/protocol/src/fault-table.ts\`, and a test keeps the two equal.

| code | meaning | retrying helps | what to do |
|---|---|---|---|
${rows.join("\n")}
`);
}

if (import.meta.main) process.stdout.write(faultPage());
