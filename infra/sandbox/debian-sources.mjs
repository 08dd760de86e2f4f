/**
 * Where the packages come from: the host's own apt sources for the suite, so that mirrors and proxies its owner chose
 * are used and none is written down here. On another distribution there are none, and mmdebstrap uses its default.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { SUITE } from "./recipe.mjs";

const SUITES = [SUITE, `${SUITE}-updates`, `${SUITE}-security`];

/** The host's sources of the suite in one-line form, or an empty list. */
export function hostSources(folder = "/etc/apt") {
  const lines = [];
  for (const file of sourceFiles(folder)) {
    const text = readFileSync(file, "utf8");
    lines.push(...(file.endsWith(".sources") ? fromStanzas(text) : fromLines(text)));
  }
  // Without the suite itself, its updates alone cannot make a system.
  return lines.some((line) => line.includes(` ${SUITE} `)) ? [...new Set(lines)] : [];
}

function sourceFiles(folder) {
  const parts = path.join(folder, "sources.list.d");
  const names = existsSync(parts) ? readdirSync(parts).sort() : [];
  const files = [path.join(folder, "sources.list"), ...names.map((name) => path.join(parts, name))];
  return files.filter((file) => /\.(list|sources)$/.test(file) && existsSync(file));
}

function fromLines(text) {
  const lines = [];
  for (const line of text.split("\n")) {
    const [, options, uri, suite, components] =
      /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line) ?? [];
    if (!uri || !suite || !SUITES.includes(suite) || !components?.split(/\s+/).includes("main")) continue;
    const key = /signed-by=(\S+)/.exec(options ?? "")?.[1];
    lines.push(sourceLine(uri, suite, key));
  }
  return lines;
}

function fromStanzas(text) {
  const lines = [];
  for (const stanza of text.split(/\n\s*\n/)) {
    const field = (name) => {
      const [, value] = new RegExp(`^${name}:[ \\t]*(.*)$`, "im").exec(stanza) ?? [];
      return value?.trim().split(/\s+/) ?? [];
    };
    if (
      !field("Types").includes("deb") ||
      !field("Components").includes("main") ||
      field("Enabled")[0] === "no"
    )
      continue;
    // A key written into the stanza itself has no path; mmdebstrap then falls back to the host's trusted keys.
    const key = field("Signed-By").find((word) => word.startsWith("/"));
    for (const uri of field("URIs")) {
      for (const suite of field("Suites"))
        if (SUITES.includes(suite)) lines.push(sourceLine(uri, suite, key));
    }
  }
  return lines;
}

function sourceLine(uri, suite, key) {
  return `deb ${key ? `[signed-by=${key}] ` : ""}${uri} ${suite} main`;
}
