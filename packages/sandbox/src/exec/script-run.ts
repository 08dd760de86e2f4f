import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "@berth/protocol";
import { endFault } from "../init/connection.ts";
import type { LinkEnd } from "../link.ts";
import { AnswerHead } from "./answer-head.ts";
import { signalScript } from "./command-scripts.ts";
import type { ExecHost, Guest } from "./exec-host.ts";
import type { ExecStream, StreamListener } from "./exec-stream.ts";

const stderrKeptBytes = 2048;
const killDeadlineMs = 5_000;
const giveUpMs = 1_000;

export interface ScriptCall {
  /** For faults. */
  readonly operation: string;
  readonly script: string;
  readonly args?: readonly string[];
  readonly stdin?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** What the script prints after its answer. Throwing `Enough` ends it early and well. */
  readonly onBody?: (bytes: Buffer) => void | Promise<void>;
  /** Whether all of the body is there; without it the answer is all. The engine tells of a script's end only later. */
  readonly isWhole?: (words: readonly string[]) => boolean;
  readonly isPartOfEnding?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** As long as its stream takes. */
  readonly untimed?: boolean;
  readonly deadlineMs?: number;
  readonly generation?: number;
  /** Nothing of it was seen yet and it changes nothing: run it again if a restart of the container cut it off. */
  readonly repeat?: (() => void) | undefined;
}

export type ScriptAnswer =
  | { readonly kind: "ok"; readonly words: readonly string[]; readonly enough: boolean }
  | { readonly kind: "no"; readonly code: string; readonly stderr: string };

/** Thrown by a body's reader that needs no more. */
export class Enough extends Error {}

type Stop =
  | { readonly why: "error"; readonly error: unknown }
  | { readonly why: "enough" }
  | { readonly why: "restarted" }
  | { readonly why: "closed"; readonly end: LinkEnd };

/** Runs one of our scripts in the container, to its answer and its end. Rejects with faults, and with what a consumer or a source threw. */
export async function runScript(host: ExecHost, call: ScriptCall): Promise<ScriptAnswer> {
  for (;;) {
    const run = new ScriptRun(host, call);
    const answer = await run.toEnd();
    if (answer !== undefined) return answer;
    if (!call.repeat) throw interrupted(call.operation, "the container was restarted");
    call.repeat();
  }
}

class ScriptRun implements Guest, StreamListener {
  readonly #host: ExecHost;
  readonly #call: ScriptCall;
  readonly #head = new AnswerHead();
  readonly #whole = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<Stop>();
  #stderr = "";
  #generation = 0;

  constructor(host: ExecHost, call: ScriptCall) {
    this.#host = host;
    this.#call = call;
  }

  get pid(): number | undefined {
    return this.#head.pid;
  }

  get isPartOfEnding(): boolean {
    return this.#call.isPartOfEnding ?? false;
  }

  onRestarting(): void {}

  onRestarted(): void {
    this.#stopped.resolve({ why: "restarted" });
  }

  onClosed(end: LinkEnd): void {
    this.#stopped.resolve({ why: "closed", end });
  }

  onBytes(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void> {
    if (stream === "stderr") {
      this.#stderr = (this.#stderr + bytes.toString("latin1")).slice(-stderrKeptBytes);
      return undefined;
    }
    const body = this.#head.take(bytes);
    const { answer } = this.#head;
    if (answer === undefined || answer.kind === "garbled") return undefined;
    const pending = body.length > 0 && answer.kind === "ok" ? this.#call.onBody?.(body) : undefined;
    const words = answer.kind === "ok" ? answer.words : [];
    const settleIfWhole = () => {
      if (answer.kind === "no" || (this.#call.isWhole?.(words) ?? true)) this.#whole.resolve();
    };
    if (pending !== undefined) return pending.then(settleIfWhole);
    settleIfWhole();
    return undefined;
  }

  onError(error: unknown): void {
    this.#stopped.resolve(error instanceof Enough ? { why: "enough" } : { why: "error", error });
  }

  /** Undefined: a restart cut it off. */
  async toEnd(): Promise<ScriptAnswer | undefined> {
    const { operation, script, args = [], stdin, signal } = this.#call;
    if (signal?.aborted) throw new Fault("aborted", { operation }, { cause: signal.reason });
    const deadlineMs = this.#call.deadlineMs ?? this.#host.options.deadlineMs;
    const stop = (error: unknown) => this.#stopped.resolve({ why: "error", error });
    const onAbort = () => stop(new Fault("aborted", { operation }, { cause: signal?.reason }));
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = this.#call.untimed
      ? undefined
      : setTimeout(() => stop(new Fault("operation-timeout", { operation, deadlineMs })), deadlineMs);
    try {
      const argv = ["sh", "-c", script, "sh", ...args];
      const { generation } = this.#call;
      const spec = { argv, env: ["LC_ALL=C"], stdin: stdin !== undefined, signal, generation };
      const opened = await this.#host.open(spec, this, this);
      this.#generation = this.#host.generation;
      if (stdin !== undefined) opened.stream.feed(stdin).catch(stop);
      return await this.#settle(opened.stream);
    } finally {
      this.#host.leave(this);
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async #settle(stream: ExecStream): Promise<ScriptAnswer | undefined> {
    const done = Promise.race([stream.ended, this.#whole.promise]).then(() => undefined);
    const stop = await Promise.race([this.#stopped.promise, done]);
    try {
      if (stop === undefined) return await this.#answer();
      if (stop.why === "restarted") return undefined;
      if (stop.why === "closed") throw endFault(stop.end, this.#host.options);
      if (stop.why === "error") {
        await this.#giveUp(stream, done);
        throw stop.error;
      }
      await this.#kill();
      const { answer } = this.#head;
      return { kind: "ok", words: answer?.kind === "ok" ? answer.words : [], enough: true };
    } finally {
      stream.cut();
    }
  }

  /** Short of input, a write gives up by itself and clears its temporary file away. */
  async #giveUp(stream: ExecStream, done: Promise<undefined>): Promise<void> {
    if (this.#call.stdin !== undefined) {
      stream.endInput();
      if (await Promise.race([done.then(() => true), sleep(giveUpMs, false)])) return;
    }
    await this.#kill();
  }

  /** Disconnecting does not end an exec; left alone it would write into nothing for as long as it has something to say. */
  async #kill(): Promise<void> {
    if (this.pid === undefined) return;
    await signalSession(this.#host, "KILL", this.pid, this.#generation).catch(() => {});
  }

  async #answer(): Promise<ScriptAnswer> {
    const answer = this.#head.finish();
    switch (answer.kind) {
      case "ok":
        return { kind: "ok", words: answer.words, enough: false };
      case "no":
        return { kind: "no", code: answer.code, stderr: cleanText(this.#stderr) };
      case "garbled":
        if (!(await this.#host.look()) && this.#host.end) throw endFault(this.#host.end, this.#host.options);
        throw interrupted(this.#call.operation, cleanText(`${answer.text} ${this.#stderr}`));
    }
  }
}

export async function signalSession(
  host: ExecHost,
  signal: "TERM" | "KILL",
  pid: number,
  generation: number,
): Promise<void> {
  await runScript(host, {
    operation: "signal",
    script: signalScript,
    args: [signal, String(pid)],
    isPartOfEnding: true,
    generation,
    deadlineMs: killDeadlineMs,
  });
}

function interrupted(operation: string, detail: string): Fault {
  return new Fault("file-operation-failed", { operation, code: "interrupted", detail });
}

/** Bounded and printable: it goes into messages and logs. */
export function cleanText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const printable = text.replace(/[\u0000-\u001f\u007f]+/g, " ");
  return printable.trim().slice(-1000);
}
