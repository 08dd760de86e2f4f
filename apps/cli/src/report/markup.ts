import { printable } from "../terminal/printable.ts";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** HTML or SVG that was made here. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Markup | readonly (string | number | Markup)[];

/** Markup with values in it: all but other markup is escaped, in elements and in quoted attributes. */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(String.raw({ raw: strings }, ...parts.map(partText)));
}

function partText(part: Part): string {
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(partText).join("");
  return printable(String(part)).replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

/** A line break in front of a bracket begins no move of the cursor. */
const moveOrReturn = /(?![\n\t])\p{Cc}\[[0-9;?]*[ -/]*[@-~]|\r(?=\n)/gu;

/** Output of a command: its lines, without the colours and moves of a terminal. */
export function outputMarkup(text: string): Markup {
  const plain = text.replaceAll(moveOrReturn, "").replaceAll("\t", "    ");
  return new Markup(plain.split("\n").map(partText).join("\n"));
}
