import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import * as frame from "../src/frame.ts";
import * as tags from "../src/tags.ts";

type Values = Record<string, number | string>;

interface Numbers {
  /** Types, tags and flags, by their names in C. */
  readonly tags: Values;
  /** Sizes and limits. */
  readonly constants: Values;
}

/** How a tag's name begins in C, where that is not the table's own name without `Tag` or `Flag`. */
const prefixes: Readonly<Record<string, string>> = {
  FrameType: "T",
  FileOp: "OP",
  ExitKind: "KIND",
  ExitReason: "REASON",
};

/** Limits that only init checks, and lengths that src/ has no name for. */
const initOnly = ["COMMANDS_MAX", "PING_MAX", "NONCE_BYTES", "LINK_NAME_MAX", "SHA256_BYTES", "KEY_BYTES"];

/** `mtimeMs` is MTIME_MS. */
function inC(name: string): string {
  return name.replaceAll(/(?!^)[A-Z]/g, "_$&").toUpperCase();
}

/** FRAME_PAYLOAD_MAX and `maxPayloadBytes` are one name: C puts `MAX` last, and TypeScript the unit. */
function wordsOf(nameInC: string): string {
  const words = nameInC.split("_").filter((word) => word !== "FRAME" && word !== "BYTES");
  return words.sort().join(" ");
}

function numbersOfC(header: string): Numbers {
  const code = header.replaceAll(/\/\*.*?\*\//gs, "");
  const defines = [...code.matchAll(/#define (\w+) (\S+)$/gm)].map(([, name = "", value = ""]) => [
    name,
    value.startsWith('"') ? JSON.parse(value) : Number(value.replace(/u$/, "")),
  ]);
  const constants: Values = Object.fromEntries(defines);
  const tags: Values = {};
  for (const [, enumName, body = ""] of code.matchAll(/enum (\w*) ?\{(.*?)\}/gs))
    for (const [, name = "", value = ""] of body.matchAll(/(\w+) = ([^,]+?)\s*(?:,|$)/g))
      (enumName === "" ? constants : tags)[name] = evaluate(value, constants);
  return { tags, constants };
}

/** A sum of products of numbers and of names that came before. */
function evaluate(expression: string, known: Values): number {
  const product = (text: string) =>
    text.split(" * ").reduce((all, one) => all * Number(known[one] ?? one), 1);
  return expression.split(" + ").reduce((sum, one) => sum + product(one), 0);
}

function numbersOfTypeScript(): Numbers {
  const found = { tags: {} as Values, constants: {} as Values };
  for (const [name, value] of Object.entries({ ...tags, ...frame })) {
    if (typeof value === "number" || typeof value === "string") found.constants[wordsOf(inC(name))] = value;
    if (typeof value !== "object") continue;
    const prefix = prefixes[name] ?? inC(name.replace(/(Tag|Flag)$/, ""));
    for (const [tag, number] of Object.entries(value)) found.tags[`${prefix}_${inC(tag)}`] = number;
  }
  return found;
}

describe("c/protocol.h and the tables of TypeScript", async () => {
  const ofC = numbersOfC(await readFile(new URL("../c/protocol.h", import.meta.url), "utf8"));
  const ofTypeScript = numbersOfTypeScript();

  test("init and the worker have one name and one number for every type, tag and flag", () => {
    expect(Object.keys(ofC.tags).length).toBeGreaterThan(100);
    expect(ofC.tags).toEqual(ofTypeScript.tags);
  });

  test("init and the worker have one name and one value for every limit that both know", () => {
    const shared = Object.entries(ofC.constants).filter(([name]) => !initOnly.includes(name));
    const byWords = Object.fromEntries(shared.map(([name, value]) => [wordsOf(name), value]));
    expect(byWords).toEqual(ofTypeScript.constants);
  });
});
