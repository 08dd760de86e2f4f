import type { JobResult, JobValue, OutputStream, SandboxProfile } from "@berth/protocol";
import type { OutputFilter, OutputPart } from "@berth/sandbox";
import {
  JoinedMask,
  type Leak,
  LeakStream,
  leaksIn,
  maskSpans,
  type Scrubber,
  ScrubStream,
} from "@berth/scrub";

export interface OutletOptions {
  /** The current scrubber: another job may bring secrets while this one runs. */
  readonly scrubber: () => Scrubber;
  readonly leaks: SandboxProfile["leaks"];
  readonly onLeak: (leak: Leak) => void;
}

/** Fields whose texts Berth writes itself, so they are not searched. */
const ours: ReadonlySet<string> = new Set(["kind", "code", "signal", "type", "encoding", "id", "sha256"]);

/** All bytes of one job leave its sandbox through this. Masks known secrets first, then searches the rest for keys. */
export class Outlet {
  readonly #options: OutletOptions;
  /** Of all the job's commands: a reader puts the output of one behind that of the other. */
  readonly #joined: JoinedMask;
  #masked = 0;

  constructor(options: OutletOptions) {
    this.#options = options;
    this.#joined = new JoinedMask(() => options.scrubber().matcher);
  }

  get contextBytes(): number {
    return this.#options.scrubber().contextBytes;
  }

  /** One stream of bytes. */
  stream(): ByteOutlet {
    return new ByteOutlet(this.#options, (count) => {
      this.#masked += count;
    });
  }

  /** A command's output. Each stream is masked alone, and then what both make together in the order in which they leave. */
  filter(): OutputFilter {
    const streams = { stdout: this.stream(), stderr: this.stream() };
    const leave = (stream: OutputStream, bytes: Buffer) => {
      this.#masked += this.#joined.mask(streams[stream], bytes);
      return bytes;
    };
    const of = (take: (stream: ByteOutlet) => Buffer): OutputPart[] =>
      (["stdout", "stderr"] as const).flatMap((stream: OutputStream) => {
        const bytes = take(streams[stream]);
        return bytes.length === 0 ? [] : [{ stream, bytes: leave(stream, bytes) }];
      });
    return {
      push: (stream, bytes) => streams[stream].push(bytes).map((piece) => leave(stream, piece)),
      get isWaiting() {
        return streams.stdout.isWaiting || streams.stderr.isWaiting;
      },
      release: () => of((stream) => stream.release()),
      end: () => of((stream) => stream.end()),
    };
  }

  /** Masks in place. Returns how many places were masked. */
  bytes(bytes: Buffer): number {
    const count = this.#options.scrubber().maskBytes(bytes);
    this.#masked += count;
    return count + this.#leaksIn(bytes);
  }

  /** For a name, or a line that may have been cut off. */
  text(text: string): string {
    const masked = this.#options.scrubber().maskPieces(text);
    if (masked !== text) this.#masked++;
    if (this.#options.leaks === "off") return masked;
    const bytes = Buffer.from(masked);
    return this.#leaksIn(bytes) === 0 ? masked : bytes.toString();
  }

  /** Masks a result for publication, except a command's output, which went through `filter` before. */
  result(result: JobResult): JobResult {
    const { scrubber, leaks } = this.#options;
    if (leaks === "off" && scrubber().matcher === undefined) return result;
    const cleaned = this.#result(result);
    if (this.#masked === 0 || cleaned.value.scrubbed !== undefined) return cleaned;
    return { ...cleaned, value: { ...cleaned.value, scrubbed: this.#masked } };
  }

  #result(result: JobResult): JobResult {
    return { ...result, outcome: this.#texts(result.outcome), value: this.#value(result.value) };
  }

  #value({ stdout, stderr, content, steps, ...rest }: JobValue): JobValue {
    const { shown, ...others } = rest as typeof rest & { readonly shown?: string };
    return {
      ...this.#texts(others),
      ...(stdout === undefined ? {} : { stdout: this.#merged(stdout) }),
      ...(stderr === undefined ? {} : { stderr: this.#merged(stderr) }),
      ...(shown === undefined ? {} : { shown: this.#merged(shown) }),
      ...(content === undefined ? {} : { content: this.#content(content, rest.encoding) }),
      ...(steps === undefined ? {} : { steps: steps.map((step) => this.#result(step)) }),
    };
  }

  /** Pieces of output as one text: its head and its tail, of one stream or of both. A value may be in none of them, and in the text. */
  #merged(text: string): string {
    const masked = this.#options.scrubber().maskText(text);
    if (masked !== text) this.#masked++;
    return masked;
  }

  #content(content: string, encoding: JobValue["encoding"]): string {
    const bytes = Buffer.from(content, encoding);
    return this.bytes(bytes) === 0 ? content : bytes.toString(encoding);
  }

  /** Masks every text in it, at any depth. */
  #texts<T>(value: T): T {
    if (typeof value === "string") return this.text(value) as T;
    if (Array.isArray(value)) return value.map((one) => this.#texts(one)) as T;
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(([name, one]) => [
      name,
      ours.has(name) ? one : this.#texts(one),
    ]);
    return Object.fromEntries(entries) as T;
  }

  #leaksIn(bytes: Buffer): number {
    const { leaks, onLeak } = this.#options;
    if (leaks === "off") return 0;
    const found = leaksIn(bytes.toString("latin1"));
    for (const leak of found) onLeak(leak);
    if (leaks !== "block") return 0;
    maskSpans(bytes, found);
    this.#masked += found.length;
    return found.length;
  }
}

/** Masks known secrets before it searches for keys, so that it does not report them as leaks. */
class ByteOutlet {
  readonly #scrub: ScrubStream;
  readonly #leaks: LeakStream | undefined;
  readonly #onMasked: (count: number) => void;
  #reported = 0;

  constructor({ scrubber, leaks, onLeak }: OutletOptions, onMasked: (count: number) => void) {
    this.#scrub = new ScrubStream(() => scrubber().matcher);
    this.#onMasked = onMasked;
    const block = leaks === "block";
    if (leaks !== "off")
      this.#leaks = new LeakStream({
        block,
        onLeak: (leak) => {
          onLeak(leak);
          if (block) onMasked(1);
        },
      });
  }

  get isWaiting(): boolean {
    return this.#scrub.isWaiting || this.#leaks?.isWaiting === true;
  }

  push(bytes: Buffer): Buffer[] {
    const leaving = this.#scrub.push(bytes);
    this.#reportMasked();
    const leaks = this.#leaks;
    return leaks ? [leaks.push(Buffer.concat(leaving))].filter(({ length }) => length > 0) : leaving;
  }

  release(): Buffer {
    const leaving = this.#scrub.release();
    return this.#leaks ? Buffer.concat([this.#leaks.push(leaving), this.#leaks.release()]) : leaving;
  }

  end(): Buffer {
    const leaving = this.#scrub.end();
    this.#reportMasked();
    return this.#leaks ? Buffer.concat([this.#leaks.push(leaving), this.#leaks.end()]) : leaving;
  }

  #reportMasked(): void {
    const { masked } = this.#scrub;
    if (masked > this.#reported) this.#onMasked(masked - this.#reported);
    this.#reported = masked;
  }
}
