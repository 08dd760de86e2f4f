/** Of nested substitutions, and of texts within those. */
const deepest = 8;

/**
 * Takes a shell's line apart into the words of its simple commands: at `;`, `&`, `|`, brackets and newlines, respecting quotes. Without
 * redirections, which may stand anywhere among the words. Also those of substitutions within double quotes.
 */
export function splitCommands(line: string, depth = 0): string[][] {
  const commands: string[][] = [[]];
  const nested: string[][] = [];
  let word: string | undefined;
  let quote: string | undefined;
  let isTarget = false;
  const endWord = () => {
    if (word === undefined) return;
    if (!isTarget) commands.at(-1)?.push(word);
    isTarget = false;
    word = undefined;
  };
  const endCommand = () => {
    endWord();
    isTarget = false;
    commands.push([]);
  };
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    const next = line[at + 1];
    if (quote === "'") {
      if (character === quote) quote = undefined;
      else word += character;
    } else if (character === "\\" && next !== undefined) {
      at++;
      // Within double quotes it escapes these alone. With a line's end it joins two lines.
      const isKept = quote === '"' && !/[$`"\\\n]/.test(next);
      if (next !== "\n") word = (word ?? "") + (isKept ? character : "") + next;
    } else if (quote === '"') {
      const isBegin = character === "`" || (character === "$" && next === "(");
      const end = isBegin ? endOfInner(line, at) : at;
      if (isBegin && depth < deepest)
        for (const words of splitCommands(innerOf(line, at, end), depth + 1)) nested.push(words);
      if (character === quote) quote = undefined;
      else word += line.slice(at, end + 1);
      // Not read again here: a line may have any number of them.
      at = end;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= "";
    } else if (character === "<" || character === ">") {
      // What is before it is a descriptor's number.
      if (word !== undefined && /^\d+$/.test(word)) word = undefined;
      endWord();
      while (/[<>&|-]/.test(line[at + 1] ?? "")) at++;
      isTarget = true;
    } else if (/[;&|\n()`]/.test(character)) endCommand();
    else if (/[ \t]/.test(character)) endWord();
    else word = (word ?? "") + character;
  }
  endWord();
  return [...commands, ...nested].filter((words) => words.length > 0);
}

/** Of a substitution that begins there: its last character, or the line's. */
function endOfInner(line: string, from: number): number {
  const last = line.length - 1;
  if (line[from] === "`") {
    const end = line.indexOf("`", from + 1);
    return end === -1 ? last : end;
  }
  let open = 0;
  for (let at = from + 1; at < line.length; at++) {
    if (line[at] === "(") open++;
    else if (line[at] === ")" && --open === 0) return at;
  }
  return last;
}

function innerOf(line: string, from: number, end: number): string {
  const begin = line[from] === "`" ? from + 1 : from + 2;
  const isClosed = line[end] === (line[from] === "`" ? "`" : ")");
  return line.slice(begin, isClosed ? end : end + 1);
}
