import { runsOf } from "./runners.ts";
import { splitCommands } from "./shell-words.ts";

/** What a command runs, as far as its text shows. */
export interface SeenCommands {
  /** The words of each simple command. */
  readonly commands: readonly (readonly string[])[];
  /** Words that may be commands of their own, run by one of those. */
  readonly inner: readonly (readonly string[])[];
  /** The words of each command that runs a text or an input in which no commands can be found. */
  readonly hiding: readonly (readonly string[])[];
  /** It runs more than can be seen: the commands in `hiding`, scripts, substitutions, variables as programs, here-documents. */
  readonly isOpaque: boolean;
  /** It is one argument vector, which an allow list can name entirely. */
  readonly isVector?: true;
}

/** Assignments and words that may precede the program. */
const before =
  /^(?:[A-Za-z_][A-Za-z0-9_]*=.*|if|then|else|elif|do|while|until|coproc|!|\{|\(|exec|command|env|nohup|time|sudo)$/;
/** Shells within shells. */
const deepest = 4;
/** Of one text. A longer one is not looked through: it would take the worker's time from other tenants. */
const mostCommands = 5_000;

/** A guard rail, not a security boundary: a program can start any other, and a line can hide what it runs in more ways than these. */
export function shellCommands(line: string, depth = 0): SeenCommands {
  const split = splitCommands(line);
  if (split.length > mostCommands)
    return { commands: [], inner: [], hiding: [split[0] ?? []], isOpaque: true };
  const parts = split.map((words) =>
    withoutFunction(words.slice(words.findIndex((word) => !isAssignment(word)) >>> 0)),
  );
  const seen = parts
    .filter((words) => words.length > 0)
    .map((words) => seenIn(words, afterPrefixes(words), depth));
  return merged(seen, /`|\$\(|<\(|>\(|<</.test(line));
}

/** What an argument vector runs. A shell's `-c` is a line like any other. */
export function argvCommands(argv: readonly string[]): SeenCommands {
  const [program = "", flag] = argv;
  const isShell =
    /^(?:.*\/)?(?:sh|bash|dash|ash|zsh)$/.test(program) && flag === "-c" && argv[2] !== undefined;
  return isShell ? shellCommands(argv[2] ?? "") : { ...seenIn(argv, argv, 0), isVector: true };
}

/** What a `code` job runs. `sh` and `bash` sources are parsed; of other languages nothing can be seen. */
export function codeCommands(language: string, source: string): SeenCommands {
  if (language === "sh" || language === "bash") return shellCommands(source);
  const words = [language === "python" ? "python3" : language];
  return { commands: [words], inner: [], hiding: [words], isOpaque: true, isVector: true };
}

function isAssignment(word: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*=/.test(word);
}

function seenIn(words: readonly string[], named: readonly string[], depth: number): SeenCommands {
  const first = words.findIndex(
    (word) => !/^(?:if|then|else|elif|do|while|until|coproc|!|\{|\()$/.test(word),
  );
  const own = first <= 0 ? words : words.slice(first);
  const { inner, lines, isHidden, isScript } = runsOf(own);
  const isTooDeep = depth >= deepest && lines.length > 0;
  const within = isTooDeep ? [] : lines.map((line) => shellCommands(line, depth + 1));
  const below = merged(within, lines.length > 0 || isHidden || isScript || isTooDeep || isMade(own[0] ?? ""));
  return {
    commands: named.length > 0 ? [named] : [],
    inner: [...inner, ...below.commands, ...below.inner],
    hiding: isHidden || isTooDeep || below.hiding.length > 0 ? [own] : [],
    isOpaque: below.isOpaque,
  };
}

/** A shell makes other words of it: `$x`, `de${x}ploy`, `/bin/de*`, `{deploy,}`. `[` and `[[` are programs. */
export function isMade(word: string): boolean {
  return /[$`*?{]|.\[|\[./.test(word) && word !== "[[";
}

function merged(all: readonly SeenCommands[], isOpaque: boolean): SeenCommands {
  return {
    commands: all.flatMap(({ commands }) => commands),
    inner: all.flatMap(({ inner }) => inner),
    hiding: all.flatMap(({ hiding }) => hiding),
    isOpaque: isOpaque || all.some((one) => one.isOpaque),
  };
}

/** `function f { git push` is how the body of a function begins. */
function withoutFunction(words: readonly string[]): readonly string[] {
  return words[0] === "function" ? words.slice(2) : words;
}

function afterPrefixes(words: readonly string[]): readonly string[] {
  const first = words.findIndex((word) => !before.test(word));
  return first === -1 ? [] : words.slice(first);
}

/** The words of each simple command. */
