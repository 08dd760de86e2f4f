import { addedUsage, type JobResult, type JobValue } from "@berth/protocol";

/** Adds the number of bytes that the job returned. A command's output was counted before it was cut. */
export function measured(result: JobResult): JobResult {
  const { usage, value } = result;
  const { steps } = value;
  if (steps) return { ...result, usage: addedUsage(steps.map(({ usage }) => usage)) };
  return {
    ...result,
    usage: { ...usage, outBytes: (usage?.outBytes ?? foundBytes(value)) + keptBytes(value) },
  };
}

/** What a file operation read or found. */
function foundBytes({ content, entries, matches }: JobValue): number {
  const lists = [entries, matches].flatMap((list) => (list === undefined ? [] : JSON.stringify(list)));
  return Buffer.byteLength(content ?? "") + lists.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function keptBytes({ artifacts = [] }: JobValue): number {
  return artifacts.reduce((sum, { size }) => sum + size, 0);
}
