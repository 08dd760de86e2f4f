export interface BatchFlags {
  readonly id: string;
  readonly out?: string | undefined;
  readonly artifacts?: string | undefined;
  readonly "in-flight"?: string | undefined;
  readonly patience?: string | undefined;
  readonly json: boolean;
}

/** The command line that goes on with a batch, with every flag that it was begun with, for a shell. */
export function resumeCommand(file: string, { json, ...flags }: BatchFlags): string {
  const { id, out, artifacts, "in-flight": inFlight, patience } = flags;
  const named = Object.entries({ id, out, artifacts, "in-flight": inFlight, patience });
  const words = named.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return ["berth", "batch", "run", file, ...words, ...(json ? ["--json"] : [])].map(shellWord).join(" ");
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
