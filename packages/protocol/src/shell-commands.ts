/** What a shell's line runs, as far as it can be found without a shell. */
export interface ShellCommands {
  /** The words of each simple command. */
  readonly commands: readonly (readonly string[])[];
  /** It runs more than can be seen: substitutions, variables as programs, here-documents. */
  readonly isOpaque: boolean;
}

/** Assignments and words that stand before the program itself. */
const before =
  /^(?:[A-Za-z_][A-Za-z0-9_]*=.*|if|then|else|elif|do|while|until|!|\{|\(|exec|command|env|nohup|time|sudo)$/;
/** Programs that run what they are given as text. */
const runners = /^(?:.*\/)?(?:eval|source|\.|xargs|sh|bash|dash|zsh|ash|busybox|python3?|perl|node|ruby)$/;

/**
 * Takes a line apart at `;`, `&`, `|`, brackets and newlines, with quotes respected. A guard rail and no boundary: a program can start
 * any other, and a line can hide what it runs in more ways than these.
 */
export function shellCommands(line: string): ShellCommands {
  const parts = split(line);
  const commands = parts.map(({ words }) => afterPrefixes(words)).filter((words) => words.length > 0);
  const hides = (words: readonly string[]) => runners.test(words[0] ?? "") || /^\$/.test(words[0] ?? "");
  return { commands, isOpaque: /`|\$\(|<\(|>\(|<</.test(line) || commands.some(hides) };
}

function afterPrefixes(words: readonly string[]): readonly string[] {
  const first = words.findIndex((word) => !before.test(word));
  return first === -1 ? [] : words.slice(first);
}

function split(line: string): { readonly words: string[] }[] {
  const parts: { words: string[] }[] = [{ words: [] }];
  let word: string | undefined;
  let quote: string | undefined;
  const endWord = () => {
    if (word !== undefined) parts.at(-1)?.words.push(word);
    word = undefined;
  };
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    if (quote !== undefined) {
      if (character === quote) quote = undefined;
      else if (quote === '"' && character === "\\" && at + 1 < line.length) word += line[++at] as string;
      else word += character;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= "";
    } else if (character === "\\" && at + 1 < line.length) {
      word = (word ?? "") + (line[++at] as string);
    } else if (/[;&|\n()]/.test(character)) {
      endWord();
      parts.push({ words: [] });
    } else if (/\s/.test(character)) endWord();
    else word = (word ?? "") + character;
  }
  endWord();
  return parts;
}
