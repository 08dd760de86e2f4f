import {
  CreditTag,
  ExecFlag,
  ExecTag,
  ExitKind,
  ExitReason,
  ExitTag,
  type Frame,
  FrameError,
  FrameType,
  KillTag,
  Records,
  RecordWriter,
  StartedTag,
} from "@berth/init";
import type { LinkCommand, LinkEnd, LinkExecution, LinkExit } from "../link.ts";
import {
  Channel,
  type ChannelWire,
  OutputWindow,
  outputWindowBytes,
  readFailure,
  unexpectedFrame,
} from "./channel.ts";
import { OutputDelivery } from "./output-delivery.ts";
import { StdinFeed } from "./stdin-feed.ts";

/** How long a consumer of output may take to finish after its command was stopped. */
const lateConsumerMs = 1_000;

/** One command, from EXEC to EXIT. */
export class ExecChannel extends Channel implements LinkExecution {
  readonly end: Promise<LinkExit>;
  readonly #settle: (exit: LinkExit) => void;
  readonly #command: LinkCommand;
  readonly #output: OutputDelivery;
  readonly #stdin: StdinFeed;
  #settleLate: (() => void) | undefined;
  #started = false;
  #ended = false;

  constructor(id: number, wire: ChannelWire, command: LinkCommand) {
    super(id, wire);
    const { promise, resolve } = Promise.withResolvers<LinkExit>();
    this.end = promise;
    this.#settle = resolve;
    this.#command = command;
    const window = new OutputWindow((bytes) => {
      if (!this.#ended)
        wire.send(FrameType.credit, id, new RecordWriter().add(CreditTag.bytes, bytes).finish());
    });
    this.#output = new OutputDelivery(window, command.onOutput, () => this.kill(0));
    this.#stdin = new StdinFeed(wire, id);
  }

  /** The payload of its EXEC. */
  request(): Buffer {
    const { argv, env, cwd, stdin, limits, killBackground, noGrowth } = this.#command;
    const flags =
      (stdin === undefined ? 0 : ExecFlag.stdinFollows) |
      (killBackground ? ExecFlag.killBackground : 0) |
      (noGrowth ? ExecFlag.noGrowth : 0);
    return new RecordWriter()
      .addAll(ExecTag.arg, argv)
      .addAll(
        ExecTag.env,
        Object.entries(env).map(([name, value]) => `${name}=${value}`),
      )
      .add(ExecTag.cwd, cwd)
      .add(ExecTag.flags, flags)
      .add(ExecTag.timeoutMs, limits.timeoutMs)
      .add(ExecTag.graceMs, limits.graceMs)
      .add(ExecTag.drainMs, limits.drainMs)
      .add(ExecTag.credit, outputWindowBytes)
      .finish();
  }

  /** Call after EXEC was sent. Sends stdin; a source that throws ends the command. */
  begin(): void {
    const { stdin, limits } = this.#command;
    if (stdin !== undefined) this.#stdin.send(stdin).catch(() => this.kill(limits.graceMs));
  }

  kill(graceMs: number): void {
    if (!this.#ended) {
      this.wire.send(FrameType.kill, this.id, new RecordWriter().add(KillTag.graceMs, graceMs).finish());
    } else {
      this.#settleLate?.();
    }
  }

  onFrame(frame: Frame): boolean {
    switch (frame.type) {
      case FrameType.started:
        if (this.#started) throw unexpectedFrame(frame);
        this.#started = true;
        this.#command.onStarted?.({ pid: new Records(frame.payload).requiredNumber(StartedTag.pid) });
        return false;
      case FrameType.stdout:
        this.#output.push("stdout", frame.payload);
        return false;
      case FrameType.stderr:
        this.#output.push("stderr", frame.payload);
        return false;
      case FrameType.stdinCredit:
        this.#stdin.onCredit(new Records(frame.payload).requiredNumber(CreditTag.bytes));
        return false;
      case FrameType.exit:
        this.#finish(readExit(frame));
        return true;
      case FrameType.fail:
        this.#finish({ kind: "refused", ...readFailure(frame) });
        return true;
      default:
        throw unexpectedFrame(frame);
    }
  }

  onClosed(end: LinkEnd): void {
    this.#finish({ kind: "broken", end });
  }

  /** Ends the channel without sending EXEC. */
  refuse(code: string, message: string): void {
    this.#finish({ kind: "refused", code, message });
  }

  #finish(exit: LinkExit): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stdin.stop();
    const settle = () => this.#settle(exit);
    const { busy } = this.#output;
    if (busy === undefined) {
      settle();
      return;
    }
    void busy.then(settle);
    // The command was stopped: a consumer that does not return must not hold up the result.
    this.#settleLate = () => setTimeout(settle, lateConsumerMs);
    if (exit.kind === "broken" || (exit.kind !== "refused" && exit.reason !== "itself")) this.#settleLate();
  }
}

const reasons = {
  [ExitReason.itself]: "itself",
  [ExitReason.timeout]: "timeout",
  [ExitReason.kill]: "kill",
  [ExitReason.watchdog]: "watchdog",
  [ExitReason.collateral]: "collateral",
  [ExitReason.hidden]: "hidden",
} as const;

function readExit(frame: Frame): LinkExit {
  const records = new Records(frame.payload);
  const kind = records.requiredNumber(ExitTag.kind);
  const value = records.requiredNumber(ExitTag.value);
  const reason = reasons[records.requiredNumber(ExitTag.reason) as keyof typeof reasons];
  if (reason === undefined) throw new FrameError("an exit for an unknown reason");
  if (kind === ExitKind.exited ? value > 255 : kind !== ExitKind.signalled || value < 1 || value > 64) {
    throw new FrameError(`an exit of kind ${kind} with ${value}`);
  }
  return {
    kind: kind === ExitKind.exited ? "exited" : "signalled",
    value,
    reason,
    oomKills: records.number(ExitTag.oomKills) ?? 0,
    wallMs: (records.number(ExitTag.wallMicros) ?? 0) / 1000,
    cpuMs: (records.number(ExitTag.cpuMicros) ?? 0) / 1000,
    maxRssBytes: (records.number(ExitTag.maxRssKib) ?? 0) * 1024,
    background: records.number(ExitTag.background) ?? 0,
  };
}
