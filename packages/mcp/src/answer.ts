import {
  type ArtifactRef,
  agentText,
  exitCodeOf,
  type FileEntry,
  type GrepMatch,
  type JobResult,
  type JobValue,
  type KeptOutput,
  maxInlineBytes,
  outcome,
} from "@berth/protocol";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import { imageType } from "./image-type.ts";
import type { Explained } from "./port.ts";

/** Maximum of output, file content or list entries in one answer: about 8,000 tokens. */
export const shownBytes = 32_000;

/** The common output schema of all tools. `output` repeats the text, because some clients show a model only this object. */
export const answerShape = z.object({
  job: z.string().optional().describe("id of the job; the tool `job` asks for it again"),
  state: z.enum(["finished", "running", "waiting", "needs-approval", "failed"]),
  outcome: outcome.optional().describe("how the job ended"),
  exit_code: z.number().optional(),
  output: z.string(),
  after: z.string().optional().describe("give this to the tool `job` to see only what comes later"),
  code: z.string().optional().describe("of a failure"),
});
export type Answer = z.input<typeof answerShape>;

const noOutput: KeptOutput = { head: [], tail: [], cutBytes: 0, totalBytes: 0 };

/** The answer for a finished job. A command that exits is an answer with any exit code; every other failure is an error. */
export function endedAnswer(job: string, result: JobResult, output: KeptOutput): CallToolResult {
  const { outcome, value } = result;
  const image = imageOf(value);
  if (image?.type === "text") return failedAnswer({ message: image.text, code: "not-an-image", advice: [] });
  const ended = outcome.kind === "done" || outcome.kind === "exited";
  const shown = image ? [] : valueLines(value);
  const text = [
    agentText({ outcome, output: shown.length > 0 ? textOutput(shown.join("\n")) : output }, { shownBytes }),
    ...notes(result, output),
  ]
    .filter((part) => part !== "")
    .join("\n");
  const exitCode = exitCodeOf(outcome);
  const shownText = text === "" ? "(no output)" : text;
  const answer: Answer = {
    job,
    state: "finished",
    outcome,
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    output: image ? `${image.mimeType}, ${value.size ?? 0} bytes` : shownText,
  };
  const links = [...(value.artifacts ?? [])].map(artifactLink);
  return {
    content: [image ?? { type: "text", text: shownText }, ...links],
    structuredContent: answer,
    isError: !ended,
  };
}

/** The answer for a job that outlasts its call. */
export function unfinishedAnswer(
  job: string,
  state: "running" | "waiting" | "needs-approval",
  { output, after }: { readonly output: KeptOutput; readonly after: string },
  approval = "",
): CallToolResult {
  const so = agentText({ outcome: { kind: "done" }, output }, { shownBytes });
  const what = {
    running: `[still running as job ${job}`,
    waiting: `[job ${job} has not begun: jobs of the same session run one after the other, and others may wait for the same workers`,
    "needs-approval": `[nothing of job ${job} has run: ${approval}`,
  }[state];
  const next = after === "" ? `id ${job}` : `id ${job} and after ${after}`;
  const text = [so, `${what}; call the tool job with ${next} to go on, or with action cancel to end it]`]
    .filter((part) => part !== "")
    .join(so.endsWith("\n") ? "" : "\n");
  const answer: Answer = { job, state, output: text, ...(after === "" ? {} : { after }) };
  return { content: [{ type: "text", text }], structuredContent: answer };
}

export function failedAnswer({ message, code, advice }: Explained): CallToolResult {
  const text = [`ERR: ${message}${code === undefined ? "" : ` [${code}]`}`, ...advice].join("\n");
  const answer: Answer = { state: "failed", output: text, ...(code === undefined ? {} : { code }) };
  return { content: [{ type: "text", text }], structuredContent: answer, isError: true };
}

export function artifactUri(id: string): string {
  return `berth://artifact/${id}`;
}

function artifactLink({ id, path, size, mime }: ArtifactRef) {
  return { type: "resource_link" as const, uri: artifactUri(id), name: path, mimeType: mime, size };
}

/** A file operation's findings, as lines; empty for a command. */
function valueLines({ content, encoding, entries, matches, lines }: JobValue): string[] {
  if (matches) return matches.length > 0 ? matches.map(matchLine) : ["no matches"];
  if (entries) return entries.length > 0 ? entries.map(entryLine) : ["nothing is there"];
  if (content === undefined || encoding === "base64") return [];
  return [content === "" && (lines?.first ?? 1) === 1 ? "(the file is empty)" : content];
}

function notes({ value, outcome }: JobResult, output: KeptOutput): string[] {
  const {
    lines,
    truncated,
    created,
    count,
    size,
    cutBytes = 0,
    artifacts = [],
    artifactsRefused = [],
  } = value;
  const found: string[] = [];
  if (lines?.more) found.push(`[lines ${lines.first} to ${lines.last}; go on with offset ${lines.last + 1}]`);
  if (truncated) found.push("[there is more; narrow it down, or raise limit]");
  if (cutBytes > 0 && output.cutBytes === 0)
    found.push(`[${cutBytes} bytes of output were not kept; send it to a file and read that]`);
  if (outcome.kind === "done" && created !== undefined)
    found.push(`${created ? "created" : "replaced"}, ${size ?? 0} bytes`);
  else if (outcome.kind === "done" && count !== undefined && size !== undefined)
    found.push(`${count} ${count === 1 ? "place" : "places"} changed`);
  for (const { path, size, id } of artifacts)
    found.push(`[artifact ${path}, ${size} bytes: ${artifactUri(id)}]`);
  for (const { path, reason } of artifactsRefused)
    found.push(`[not kept as an artifact: ${path}: ${reason}]`);
  if (outcome.kind === "lost") found.push("Berth does not know whether it ran; check before you repeat it");
  return found;
}

function entryLine({ path, type, size, target }: FileEntry): string {
  if (type === "directory") return `${path}/`;
  if (type === "symlink") return `${path} -> ${target ?? "?"}`;
  return `${path} (${size} bytes)`;
}

function matchLine({ path, line, text, cut }: GrepMatch): string {
  return `${path}:${line}:${text}${cut ? " …" : ""}`;
}

function textOutput(text: string): KeptOutput {
  const bytes = Buffer.from(text);
  return { ...noOutput, head: [{ stream: "stdout", bytes }], totalBytes: bytes.length };
}

/** An image if the bytes are one, under any file name; otherwise the reason. */
function imageOf({ content, encoding, size = 0 }: JobValue) {
  if (content === undefined || encoding !== "base64") return undefined;
  const bytes = Buffer.from(content, "base64");
  const mimeType = imageType(bytes);
  const refused = (text: string) => ({ type: "text" as const, text });
  if (mimeType === undefined)
    return refused(`the file has an image's name, but its ${size} bytes are not one; use bash`);
  if (bytes.length < size)
    return refused(
      `the image has ${size} bytes, and at most ${maxInlineBytes} are shown; make a smaller copy and read that`,
    );
  return { type: "image" as const, data: content, mimeType };
}
