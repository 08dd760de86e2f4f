import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A fenced block of a page. */
export interface DocBlock {
  readonly heading: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

/** Blocks in one of the languages, in the page's order. */
export async function docBlocks(page: string, languages: readonly string[]): Promise<DocBlock[]> {
  const found: DocBlock[] = [];
  let heading = "";
  let open: { language: string; line: number; code: string[] } | undefined;
  const lines = (await readFile(join(root, page), "utf8")).split("\n");
  for (const [index, text] of lines.entries()) {
    if (open && text === "```") {
      const { language, line, code } = open;
      if (languages.includes(language)) found.push({ heading, line, language, code: `${code.join("\n")}\n` });
      open = undefined;
    } else if (open) open.code.push(text);
    else if (text.startsWith("```")) open = { language: text.slice(3), line: index + 1, code: [] };
    else if (text.startsWith("#")) heading = text.replace(/^#+ /, "");
  }
  return found;
}

/** A page's blocks as programs: the first opens the client, and every other one in its language goes on from there. */
export function programsOf([opening, ...blocks]: readonly DocBlock[]): (DocBlock & {
  readonly file: string;
})[] {
  return blocks.map((block) => {
    const file = `line-${block.line}.${block.language === "js" ? "mjs" : block.language}`;
    if (block.language !== opening?.language) return { ...block, file };
    return { ...block, file, code: `${opening.code}${block.code}\nawait berth.close();\n` };
  });
}

export async function writePrograms(
  directory: string,
  programs: readonly { readonly file: string; readonly code: string }[],
): Promise<void> {
  for (const { file, code } of programs) await writeFile(join(directory, file), code);
  const settings = {
    extends: join(root, "tsconfig.base.json"),
    compilerOptions: {
      composite: false,
      declarationMap: false,
      noEmit: true,
      // The opening names a tenant that not every block needs.
      noUnusedLocals: false,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
    },
    include: ["*.ts"],
  };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify(settings));
}

/** The texts of the comments behind a block's `console.log` calls, in order. */
export function statedOutput(code: string): string {
  const stated = code.matchAll(/console\.log\(.*\); \/\/ (.+)$/gm);
  return [...stated].map((match) => match[1]).join(" ");
}

/** Whether the output matches. White space is ignored, and … stands for any text. */
export function fits(stated: string, output: string): boolean {
  const literal = stated.split("…").map((part) => oneLine(part).replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*?")}$`).test(oneLine(output));
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** Links of a page, to files or to headings, that lead nowhere. */
export async function brokenLinks(page: string): Promise<string[]> {
  const text = await readFile(join(root, page), "utf8");
  const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
  const broken = links.map(async ([, file = "", heading]) => {
    const target = file === "" ? join(root, page) : join(root, dirname(page), file);
    const found = await readFile(target, "utf8").catch(() => undefined);
    const leads = found !== undefined && (heading === undefined || headingsOf(found).includes(heading));
    return leads ? [] : [`${file}#${heading ?? ""}`];
  });
  return (await Promise.all(broken)).flat();
}

/** A page's lines without those of code and tables, which cannot be wrapped: a blank line is in the place of each block. */
export function proseLines(text: string): string[] {
  let code = false;
  return text.split("\n").map((line) => {
    const fence = /^\s*```/.test(line);
    if (fence) code = !code;
    return fence || code || /^\s*\|/.test(line) ? "" : line;
  });
}

/** The anchors that code hosts make of a page's headings. */
export function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

export interface ProgramEnd {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, with only PATH of the test's environment. */
export function runProgram(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ProgramEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { PATH: process.env.PATH ?? "", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code: code ?? signal ?? "gone", stdout, stderr }));
  });
}
