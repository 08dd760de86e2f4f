import { overview, reference } from "../apps/cli/src/help.ts";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

/** docs/cli.md, generated from the command's help. `node --conditions=@berth/source test/cli-page.ts > docs/cli.md` writes it. */
export async function cliPage(): Promise<string> {
  const pages = (await reference()).split(/\n(?=berth |Environment\n)/);
  return wrappedMarkdown(`# The berth command

This page is the output of \`berth help\` and \`berth help all\`; a test keeps it equal. In a clone, \`npm run -s berth --\` stands for \`berth\`.

${block(await overview())}
${pages.map((page) => `## ${titleOf(page)}\n\n${block(page)}`).join("\n")}`);
}

function titleOf(page: string): string {
  const [first = ""] = page.split("\n", 1);
  return first.replace(/( \[| [A-Z]| --).*$/, "");
}

function block(text: string): string {
  return `\`\`\`text\n${text.trimEnd()}\n\`\`\`\n`;
}

if (import.meta.main) process.stdout.write(await cliPage());
