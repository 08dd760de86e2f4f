export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly { readonly name: string; readonly about: string }[];
}

interface Words {
  /** Candidates for the first word. */
  readonly first: readonly string[];
  /** Candidates for the second word, by the first. */
  readonly second: ReadonlyMap<string, readonly string[]>;
}

function wordsOf(commands: readonly CompletedCommand[]): Words {
  const second = new Map<string, string[]>();
  for (const { name } of commands) {
    const [one = "", two] = name.split(" ");
    second.set(one, [...(second.get(one) ?? []), ...(two === undefined ? [] : [two])]);
  }
  return {
    first: [...second.keys(), "help"],
    second: new Map([...second].filter(([, words]) => words.length > 0)),
  };
}

/** Words, options, and otherwise file names. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const { first, second } = wordsOf(commands);
  const seconds = [...second].map(([word, words]) => `      ${word}) words=${quoted(words.join(" "))} ;;`);
  const options = commands.map(
    ({ name, options }) =>
      `      ${quoted(name)}) words=${quoted(options.map((option) => option.name).join(" "))} ;;`,
  );
  return `# bash completion for berth
_berth() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words="" name="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    words=${quoted(first.join(" "))}
  elif [[ $current == -* ]]; then
    case "\${COMP_WORDS[1]}" in
      ${[...second.keys()].join("|")}) name="\${COMP_WORDS[1]} \${COMP_WORDS[2]}" ;;
    esac
    case "$name" in
${options.join("\n")}
    esac
  elif [[ $COMP_CWORD -eq 2 ]]; then
    case "\${COMP_WORDS[1]}" in
${seconds.join("\n")}
      completion) words='bash zsh fish' ;;
    esac
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o default 2>/dev/null
  fi
}
complete -F _berth berth`;
}

export function zshScript(commands: readonly CompletedCommand[]): string {
  const { second } = wordsOf(commands);
  const described = (name: string, about: string) => quoted(`${name}:${about.replaceAll(":", "\\:")}`);
  const firsts = new Map(
    commands.map(({ name, summary }) => {
      const [one = ""] = name.split(" ");
      return [one, second.get(one)?.join(", ") ?? summary];
    }),
  );
  const seconds = [...second.keys()].map((word) => {
    const inner = commands.filter(({ name }) => name.startsWith(`${word} `));
    return `      ${word}) choices=(${inner.map(({ name, summary }) => described(name.slice(word.length + 1), summary)).join(" ")}) ;;`;
  });
  const options = commands.map(
    ({ name, options }) =>
      `      ${quoted(name)}) choices=(${options.map((option) => described(option.name, option.about)).join(" ")}) ;;`,
  );
  return `#compdef berth
_berth() {
  local -a choices
  local name="\${words[2]}"
  case "$name" in
    ${[...second.keys()].join("|")}) name="\${words[2]} \${words[3]}" ;;
  esac
  if (( CURRENT == 2 )); then
    choices=(${[...firsts].map(([name, summary]) => described(name, summary)).join(" ")})
  elif [[ "$PREFIX" == -* ]]; then
    case "$name" in
${options.join("\n")}
    esac
  elif (( CURRENT == 3 )); then
    case "\${words[2]}" in
${seconds.join("\n")}
      completion) choices=(bash zsh fish) ;;
    esac
  fi
  if (( \${#choices} )); then _describe berth choices; else _files; fi
}
_berth "$@"`;
}

export function fishScript(commands: readonly CompletedCommand[]): string {
  const { second } = wordsOf(commands);
  const lines = ["# fish completion for berth"];
  const seen = new Set<string>();
  for (const { name, summary, options } of commands) {
    const [one = "", two] = name.split(" ");
    if (!seen.has(one))
      lines.push(
        `complete -c berth -n __fish_use_subcommand -a ${quoted(one)} -d ${quoted(second.get(one)?.join(", ") ?? summary)}`,
      );
    seen.add(one);
    const inner = second.get(one)?.join(" ");
    if (two)
      lines.push(
        `complete -c berth -n ${quoted(`__fish_seen_subcommand_from ${one}; and not __fish_seen_subcommand_from ${inner}`)} -a ${quoted(two)} -d ${quoted(summary)}`,
      );
    const within = two
      ? `__fish_seen_subcommand_from ${one}; and __fish_seen_subcommand_from ${two}`
      : `__fish_seen_subcommand_from ${one}`;
    for (const option of options)
      lines.push(
        `complete -c berth -n ${quoted(within)} -l ${option.name.slice(2)} -d ${quoted(option.about)}`,
      );
  }
  lines.push("complete -c berth -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'");
  return lines.join("\n");
}

/** Quotes any text for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
