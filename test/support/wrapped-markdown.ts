/** The width of every page, as test/prose.test.ts checks it. */
const columns = 100;

/** A word that would begin a heading, list, quote or table if it stood first on a line. */
const startsBlock = /^(#+|[-+*>|]|\d+[.)])$|^[>|]/;
/** Code between backticks stays on one line. */
const unbroken = /(?:`[^`]*`|[^\s`])+/g;
const listMark = /^ *(?:[-*+]|\d+\.) +/;

/**
 * Wraps the paragraphs and list items of a generated page. Headings, tables and code stay as they are. A line that continues a
 * paragraph is joined with it first, so the texts in the code may be wrapped in any way.
 */
export function wrappedMarkdown(page: string): string {
  const lines: string[] = [];
  let open = "";
  let isCode = false;
  const close = () => {
    if (open !== "") lines.push(...wrapped(open));
    open = "";
  };
  for (const line of page.split("\n")) {
    const isFence = line.startsWith("```");
    if (isFence) isCode = !isCode;
    if (isFence || isCode || line === "" || /^[#|]/.test(line)) {
      close();
      lines.push(line);
    } else if (listMark.test(line)) {
      close();
      open = line;
    } else open = open === "" ? line : `${open} ${line.trim()}`;
  }
  close();
  return lines.join("\n");
}

function wrapped(text: string): string[] {
  const [mark = ""] = listMark.exec(text) ?? [];
  const indent = " ".repeat(mark.length);
  const lines: string[] = [];
  let line = mark;
  for (const word of wordsOf(text.slice(mark.length))) {
    const isFirst = line.trim() === mark.trim();
    if (!isFirst && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = indent + word;
    } else line += isFirst ? word : ` ${word}`;
  }
  return [...lines, line];
}

/** A word that would begin a block stays with the word before it. */
function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const word of text.match(unbroken) ?? []) {
    if (startsBlock.test(word) && words.length > 0) words.push(`${words.pop()} ${word}`);
    else words.push(word);
  }
  return words;
}
