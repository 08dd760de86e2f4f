import type { CheckedOrder } from "@berth/client";
import {
  type ArtifactRef,
  execBlock,
  exitCodeOf,
  type FileEntry,
  type Job,
  type JobResult,
  listText,
} from "@berth/protocol";
import type { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import { draftOf, idempotentId, type SubmissionHeaders, submissionHeaders } from "../jobs/submission.ts";
import { expectDone, runToEnd } from "../jobs/synchronous.ts";
import { type Principal, tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import * as calls from "../schemas/sandbox-calls.ts";

export interface SandboxCall<B extends z.ZodType, A extends z.ZodType> {
  readonly name: string;
  readonly summary: string;
  readonly body: B;
  readonly answer: A;
  /** Builds the job's request; validated like any job's. */
  readonly request: (body: z.output<B>) => calls.Request;
  readonly shape: (result: JobResult, body: z.output<B>, job: Job) => z.input<A>;
}

/** A command's answer reports how it ended. A file operation succeeds or is refused. */
const runs = new Set(["execute", "bash"]);

/** By names or ids. */
type SessionRef = { tenant_id?: string | undefined; session_id: string };

/** The code sandbox API: one job per call, waited for. Each session has its own container and workspace. */
export function sandboxRoutes(parts: Parts): AnyRoute[] {
  function call<B extends z.ZodType<SessionRef>, A extends z.ZodType>(spec: SandboxCall<B, A>): AnyRoute {
    return route(
      {
        method: "POST",
        path: `/v1/sandbox/${spec.name}`,
        tag: "sandbox",
        summary: spec.summary,
        access: "key",
        headers: submissionHeaders,
        body: spec.body,
        answers: {
          200: { about: "How it ended", schema: spec.answer as z.ZodType },
          202: {
            about: "It takes longer than a request may; the answer names the job",
            schema: calls.stillRunning,
          },
        },
      },
      async ({ body, headers, principal, signal }) => {
        const made = sessionDraft(principal, body, spec.request(body), headers);
        const draft = await once(made, headers, principal, [spec.name, body]);
        const { job } = draft;
        const result = await runToEnd(parts, draft, {
          maxMs: parts.config.maxWaitMs,
          signal,
          principal,
        });
        if (!result) return pending(job);
        if (!runs.has(spec.name)) expectDone(result.outcome);
        return { status: 200, body: spec.shape(result, body, job) };
      },
    );
  }

  /** With an Idempotency-Key, a repeated call returns the first call's job. */
  async function once(
    draft: CheckedOrder,
    headers: SubmissionHeaders,
    principal: Principal,
    asked: unknown,
  ): Promise<CheckedOrder> {
    const key = headers["idempotency-key"];
    if (key === undefined) return draft;
    const id = await idempotentId(parts.redis, key, { principal, tenant: draft.job.tenant }, asked);
    return draft.withId(`ik_${id}`);
  }

  return [
    call({
      name: "execute",
      summary: "Run code",
      body: calls.execute,
      answer: calls.ran,
      request: ({ code, language, ...more }) => ({
        kind: "code",
        source: code,
        language: language === "javascript" ? "node" : language,
        ...running(more),
      }),
      shape: (result, { block, language }, job) => ranShape(result, job, block ? language : undefined),
    }),
    call({
      name: "bash",
      summary: "Run a shell command",
      body: calls.bash,
      answer: calls.ran,
      request: ({ command, ...more }) => ({ kind: "exec", argv: ["bash", "-c", command], ...running(more) }),
      shape: (result, { block, command }, job) => ranShape(result, job, block ? command : undefined),
    }),
    call({
      name: "read",
      summary: "Read a text file, by lines",
      body: calls.read,
      answer: calls.readAnswer,
      request: ({ path, artifact, offset, limit }) => ({
        kind: "read",
        path: path === "" && artifact !== undefined ? artifact : path,
        ...(artifact === undefined ? {} : { artifact }),
        line: offset,
        lines: limit,
      }),
      shape: ({ value: { content = "", lines } }, { path }) => ({
        path,
        content,
        first_line: lines?.first ?? 1,
        last_line: lines?.last ?? 0,
        more: lines?.more ?? false,
      }),
    }),
    call({
      name: "read_binary",
      summary: "Read bytes of a file",
      body: calls.readBinary,
      answer: calls.binaryAnswer,
      request: ({ path, offset, limit }) => ({ kind: "read", as: "bytes", path, offset, bytes: limit }),
      shape: ({ value: { content = "", size = 0 } }, { path }) => ({
        path,
        content,
        encoding: "base64" as const,
        size,
      }),
    }),
    call({
      name: "write",
      summary: "Write a file",
      body: calls.write,
      answer: calls.written,
      request: ({ path, content, encoding, append }) => ({ kind: "write", path, content, encoding, append }),
      shape: ({ value: { size = 0, sha256 = "", created = false } }, { path }) => ({
        path,
        size,
        sha256,
        created,
      }),
    }),
    call({
      name: "grep",
      summary: "Search in files",
      body: calls.grep,
      answer: calls.matched,
      request: ({ pattern, path, regex, ignore_case, include, limit }) => ({
        kind: "grep",
        pattern,
        path,
        regex,
        ignoreCase: ignore_case,
        include,
        maxItems: limit,
      }),
      shape: ({ value: { matches = [], truncated = false } }) => ({ matches: [...matches], truncated }),
    }),
    call({
      name: "glob",
      summary: "Find files by name",
      body: calls.glob,
      answer: calls.found,
      request: ({ pattern, path, dot, limit }) => ({
        kind: "glob",
        patterns: [pattern],
        base: path,
        dot,
        maxItems: limit,
      }),
      shape: ({ value: { entries = [], truncated = false } }) => ({
        paths: entries.map(({ path }) => path),
        truncated,
      }),
    }),
    call({
      name: "edit",
      summary: "Replace text in a file",
      body: calls.edit,
      answer: calls.edited,
      request: ({ path, old_text, new_text, replace_all }) => ({
        kind: "edit",
        path,
        find: old_text,
        replace: new_text,
        all: replace_all,
      }),
      shape: ({ value: { count = 0, size = 0, sha256 = "" } }, { path }) => ({ path, count, size, sha256 }),
    }),
    call({
      name: "patch",
      summary: "Apply a unified diff",
      body: calls.patch,
      answer: calls.counted,
      request: ({ diff }) => ({ kind: "patch", diff }),
      shape: ({ value: { count = 0 } }) => ({ count }),
    }),
    call({
      name: "list",
      summary: "List a directory",
      body: calls.list,
      answer: calls.listed,
      request: ({ path, recursive, limit }) => ({ kind: "list", path, recursive, maxItems: limit }),
      shape: ({ value }, { path }) => {
        const { entries = [], persisted = [], truncated = false } = value;
        const text = listText(path, value);
        return { entries: entries.map(entryShape), persisted: persisted.map(linked), truncated, text };
      },
    }),
    call({
      name: "stat",
      summary: "Look at a file or directory",
      body: calls.stat,
      answer: calls.statAnswer,
      request: ({ path, hash }) => ({ kind: "stat", path, hash }),
      shape: ({ value: { entries: [first] = [], sha256 } }, { path }) => ({
        entry: entryShape(first ?? { path, type: "other", size: 0, mode: 0, modifiedMs: 0 }),
        ...(sha256 === undefined ? {} : { sha256 }),
      }),
    }),
  ];
}

/** A job in its session's own sandbox. */
export function sessionDraft(
  principal: Principal,
  { tenant_id, session_id }: SessionRef,
  request: calls.Request,
  headers: SubmissionHeaders,
): CheckedOrder {
  const tenant = tenant_id ?? tenantFor(principal, undefined, calls.defaultTenant);
  return draftOf({ tenant, session: session_id, scope: "session", request }, principal, { headers });
}

export function pending({ id }: Job) {
  return {
    status: 202,
    headers: { location: `/v1/jobs/${id}` },
    body: { job_id: id, url: `/v1/jobs/${id}` },
  } as const;
}

function running(asked: Omit<z.output<typeof calls.bash>, "command" | "block">) {
  const { timeout, env, stdin, cwd, artifacts, new_files: newFiles } = asked;
  return {
    env,
    cwd,
    newFiles,
    ...(stdin === undefined ? {} : { stdin }),
    ...(artifacts === undefined ? {} : { artifacts }),
    ...(timeout === undefined ? {} : { limits: { timeoutMs: Math.ceil(timeout * 1_000) } }),
  };
}

/** `named` is the command in the text's block; undefined for a plain text. */
function ranShape(
  { outcome, value, timing, text = "" }: JobResult,
  { id }: Job,
  named: string | undefined,
): z.input<typeof calls.ran> {
  return {
    job_id: id,
    outcome,
    exit_code: exitCodeOf(outcome) ?? null,
    stdout: value.stdout ?? "",
    stderr: value.stderr ?? "",
    text: named === undefined ? text : execBlock(named, text),
    cut_bytes: value.cutBytes ?? 0,
    duration_ms: Math.round(timing.wallMs),
    artifacts: (value.artifacts ?? []).map(linked),
  };
}

function linked(artifact: ArtifactRef) {
  return { ...artifact, url: `/v1/artifacts/${artifact.id}` };
}

function entryShape({ modifiedMs, ...entry }: FileEntry) {
  return { ...entry, modified_ms: modifiedMs };
}
