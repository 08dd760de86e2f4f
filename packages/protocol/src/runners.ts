/** What a command runs besides the program that it names first. */
export interface Runs {
  /** Words that may be a command of its own, run by the first: of `timeout 5 make`, also `5 make` and `make`. */
  readonly inner: readonly (readonly string[])[];
  /** Texts that a shell may run. */
  readonly lines: readonly string[];
  /** It runs a text or an input that is no command line, or that is not in the request. */
  readonly isHidden: boolean;
  /** It runs a file of the sandbox's. */
  readonly isScript: boolean;
}

const shells = /^(?:sh|bash|dash|ash|zsh|ksh|mksh|fish)$/;
const interpreters =
  /^(?:python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|node|nodejs|deno|bun|php[\d.]*|lua[\d.]*|tclsh[\d.]*|osascript)$/;
/** Programs that run the rest of their words. */
const wrappers =
  /^(?:env|timeout|nice|ionice|nohup|setsid|stdbuf|time|sudo|doas|exec|command|builtin|busybox|toybox|chroot|unshare|nsenter|setpriv|strace|ltrace|flock|chrt|taskset|unbuffer|start-stop-daemon|setarch|linux32|linux64|prlimit|runuser|capsh|fakeroot|numactl|cpulimit|valgrind|gosu|su-exec|tini|dumb-init|find|xargs|parallel|watch|entr|script|su|at|batch)$/;
/** Wrappers that also run their input, or a text. */
const readers = /^(?:xargs|parallel|watch|entr|script|su|at|batch)$/;
const awks = /^(?:awk|gawk|mawk|nawk)$/;
const execOfFind = /^-(?:exec|execdir|ok|okdir)$/;
/** Words of a long argument vector that are tried as the first of a command. */
const mostInner = 64;

const nothing: Runs = { inner: [], lines: [], isHidden: false, isScript: false };
const hidden: Runs = { ...nothing, isHidden: true };

export function runsOf(words: readonly string[]): Runs {
  const [first = "", ...rest] = words;
  const program = first.slice(first.lastIndexOf("/") + 1);
  if (shells.test(program)) return runsOfShell(rest);
  if (interpreters.test(program)) return runsOfInterpreter(rest);
  if (program === "eval") return { ...nothing, lines: [rest.join(" ")] };
  // What they are given runs later, in the same shell.
  if (program === "trap") return { ...nothing, lines: rest.slice(0, 1) };
  if (program === "alias")
    return { ...nothing, lines: rest.map((word) => word.slice(word.indexOf("=") + 1)) };
  if (awks.test(program)) return runsOfAwk(rest);
  if (program === "source" || program === ".") return { ...nothing, isScript: true };
  if (program === "find" && !rest.some((word) => execOfFind.test(word))) return nothing;
  return wrappers.test(program) ? runsOfWrapper(program, rest) : nothing;
}

/** Only the program knows where its options end, so each word may be the first of the command that it runs. */
function runsOfWrapper(program: string, rest: readonly string[]): Runs {
  const inner = rest.slice(0, mostInner).map((_, index) => rest.slice(index));
  const splits = program === "env" && rest.some((word) => /^-[A-Za-z]*S|^--split-string/.test(word));
  const all = inner.map((words) => (isRunner(words[0] ?? "") ? runsOf(words) : nothing));
  return {
    inner,
    lines: all.flatMap(({ lines }) => lines),
    isHidden: splits || readers.test(program) || rest.length > mostInner || all.some((one) => one.isHidden),
    isScript: all.some((one) => one.isScript),
  };
}

/** Excludes wrappers within wrappers: their commands are among the words already. */
function isRunner(word: string): boolean {
  const program = word.slice(word.lastIndexOf("/") + 1);
  return shells.test(program) || interpreters.test(program) || program === "eval";
}

/** With `-c`, alone or among other letters, one of the words behind it is a line; options may have values before that. */
function runsOfShell(rest: readonly string[]): Runs {
  const at = rest.findIndex((word) => /^-[A-Za-z]*c[A-Za-z]*$|^--command/.test(word));
  if (at >= 0) {
    const lines = rest.slice(at + 1).filter((word) => !/^[-+]/.test(word));
    return lines.length === 0 ? hidden : { ...nothing, lines };
  }
  const script = rest.findIndex((word) => !/^[-+]/.test(word));
  return script === -1 || rest.some((word) => /^-[A-Za-z]*s/.test(word))
    ? hidden
    : { ...nothing, isScript: true };
}

/** Its programs start others by `system`, and by pipes. */
function runsOfAwk(rest: readonly string[]): Runs {
  if (rest.some((word) => /^(?:-f|--file)/.test(word))) return { ...nothing, isScript: true };
  return rest.some((word) => /system|\|/.test(word)) ? hidden : nothing;
}

/** Without a file it reads its program from its input. */
function runsOfInterpreter(rest: readonly string[]): Runs {
  const script = rest.findIndex((word) => !word.startsWith("-"));
  const options = script === -1 ? rest : rest.slice(0, script);
  const isInline = options.some((word) => /^-[A-Za-z]*[ceEpr]|^-$|^--(?:eval|print|command)/.test(word));
  const onlyPrints =
    options.length > 0 && options.every((word) => /^(?:-V|-v|-h|--version|--help)$/.test(word));
  if (onlyPrints && script === -1) return nothing;
  return isInline || script === -1 ? hidden : { ...nothing, isScript: true };
}
