export interface BatchFlags {
  readonly id: string;
  readonly out?: string | undefined;
  readonly artifacts?: string | undefined;
  readonly report?: string | undefined;
  readonly labels: readonly string[];
  readonly "retry-failed"?: string | undefined;
  readonly "max-failures"?: string | undefined;
  readonly timeout?: string | undefined;
  readonly "in-flight"?: string | undefined;
  readonly patience?: string | undefined;
  readonly json: boolean;
}

/** A shell command that resumes the batch with the flags it was started with. */
export function resumeCommand(file: string, { json, labels, ...flags }: BatchFlags): string {
  const { id, out, artifacts, report, timeout, patience, "in-flight": inFlight } = flags;
  const { "retry-failed": retry, "max-failures": failures } = flags;
  const named = Object.entries({
    ...{ id, out, artifacts, report, "retry-failed": retry, "max-failures": failures, timeout },
    ...{ "in-flight": inFlight, patience },
  });
  const words = named.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  const labelled = labels.flatMap((text) => ["--labels", text]);
  return ["berth", "batch", "run", file, ...words, ...labelled, ...(json ? ["--json"] : [])]
    .map(shellWord)
    .join(" ");
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
