import type { PrepareTool } from "./access-rules.ts";
import type { JobRequest } from "./job-kinds.ts";

const longest = 2_000;
/** Values that may be long or secret; what is left says what would happen. */
const left = new Set(["env", "stdin", "content", "source", "replace", "diff"]);

/** What a request would do, for a person who decides about it: its fields as JSON, without contents and environments. */
export function requestPreview(request: JobRequest, prepare?: PrepareTool): string {
  if (request.kind === "exec") return shortened(request.command ?? wordsOf(request.argv ?? []));
  if (request.kind === "tool" && prepare) {
    const { argv } = prepare(request).command;
    return shortened(`${request.name}: ${wordsOf(argv)}`);
  }
  if (request.kind === "code") return shortened(`${request.language}: ${request.source}`);
  const text = JSON.stringify(request, (name, value: unknown) =>
    left.has(name) && typeof value === "string"
      ? `(${value.length} characters)`
      : name === "env"
        ? undefined
        : value,
  );
  return shortened(text);
}

function wordsOf(argv: readonly string[]): string {
  return argv.map((word) => JSON.stringify(word)).join(" ");
}

function shortened(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length} characters)`;
}
