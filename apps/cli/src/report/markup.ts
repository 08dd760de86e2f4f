import { printable } from "../terminal/printable.ts";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** HTML or SVG that this module built. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Markup | readonly (string | number | Markup)[];

/** Builds markup. Escapes every value that is not markup, for use in elements and quoted attributes. */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(String.raw({ raw: strings }, ...parts.map(partText)));
}

function partText(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(partText).join("");
  return printable(String(part)).replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

/** A line break before a bracket is text, not part of a cursor sequence. */
const moveOrReturn = /(?![\n\t])\p{Cc}\[[0-9;?]*[ -/]*[@-~]|\r(?=\n)/gu;

/** Splits a command's output into lines and removes terminal escape sequences. */
export function outputMarkup(text: string): Markup {
  const plain = text.replaceAll(moveOrReturn, "").replaceAll("\t", "    ");
  return new Markup(plain.split("\n").map(partText).join("\n"));
}
