import { type Arguments, type Command, command, commonOptions } from "../command.ts";
import { loadAll } from "../commands.ts";
import { bashScript, fishScript, zshScript } from "../completion-scripts.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { oneOf } from "../values.ts";

const options = {} as const;
const shells = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export const completion = command({
  name: "completion",
  summary: "completion for your shell",
  positionals: ["SHELL"],
  about: "SHELL is bash, zsh or fish.",
  examples: [
    { line: "source <(berth completion bash)", note: "for this terminal; put it into ~/.bashrc for all" },
    { line: "berth completion zsh > ~/.zfunc/_berth", note: "where fpath has ~/.zfunc" },
    { line: "berth completion fish > ~/.config/fish/completions/berth.fish", note: "" },
  ],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, { terminal }: Context): Promise<number> {
  const shell = oneOf("SHELL", positionals[0] ?? "", Object.keys(shells) as (keyof typeof shells)[]);
  const script = shells[shell]((await loadAll()).map(wordsOf));
  await terminal.answer({ shell, script }, () => script);
  return exitCodes.ok;
}

function wordsOf({ name, summary, options: specs }: Command) {
  const all = Object.entries({ ...specs, ...commonOptions });
  return { name, summary, options: all.map(([option, { about }]) => ({ name: `--${option}`, about })) };
}
