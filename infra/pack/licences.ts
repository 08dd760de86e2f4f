import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Name, licence and notice of each npm package in the folders given. */
export async function licences(folders: readonly string[]): Promise<string> {
  const entries = await Promise.all(folders.map(licence));
  return `This package contains the following packages of others.\n\n${[...new Set(entries)].sort().join("\n")}`;
}

async function licence(folder: string): Promise<string> {
  const { name, version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const notices = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  const texts = await Promise.all(notices.map((file) => readFile(join(folder, file), "utf8")));
  return [`${"=".repeat(72)}\n${name} ${version} (${license ?? "see below"})\n`, ...texts].join("\n");
}
