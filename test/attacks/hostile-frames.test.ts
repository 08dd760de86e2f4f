import {
  CreditTag,
  DoneTag,
  ExitTag,
  encodeFrame,
  FailTag,
  FencedTag,
  FrameType,
  HelloAckTag,
  headerBytes,
  ItemTag,
  maxPayloadBytes,
  RecordWriter,
  StartedTag,
} from "@berth/init";
import { execLimits } from "@berth/protocol";
import { afterEach, describe, expect, test } from "vitest";
import { InitConnection } from "../../packages/sandbox/src/init/connection.ts";
import { InitLink } from "../../packages/sandbox/src/init/link.ts";
import type { LinkCommand, LinkEnd } from "../../packages/sandbox/src/link.ts";
import { type Answer, FakeInit, honest, turning } from "./fake-init.ts";
import { growthOf } from "./memory.ts";

const who = { sandboxKey: "acme", epoch: 1 };
const command: LinkCommand = {
  argv: ["true"],
  env: {},
  cwd: "",
  limits: execLimits.parse({}),
  killBackground: false,
  onOutput: () => {},
  onStarted: () => {},
};
const open: InitConnection[] = [];

afterEach(() => {
  for (const connection of open.splice(0)) connection.close();
});

interface Talk {
  readonly init: FakeInit;
  readonly connection: InitConnection;
  readonly link: InitLink;
}

function connectionTo(init: FakeInit, leaseMs = 10_000): InitConnection {
  const connection = new InitConnection(init, { ...who, leaseMs, deadlineMs: 300, resync: false });
  open.push(connection);
  return connection;
}

async function talk(answer: Answer = honest, leaseMs?: number): Promise<Talk> {
  const init = new FakeInit(answer);
  const connection = connectionTo(init, leaseMs);
  await connection.open();
  return { init, connection, link: new InitLink(connection, { ...who, deadlineMs: 300 }) };
}

const number = (tag: number, value: number) => new RecordWriter().add(tag, value).finish();
const exit = (kind: number, value: number, reason: number) =>
  new RecordWriter().add(ExitTag.kind, kind).add(ExitTag.value, value).add(ExitTag.reason, reason).finish();
const item = (records: RecordWriter) => {
  const bytes = records.finish();
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
const entry = (path: string) => item(new RecordWriter().add(ItemTag.path, path).add(ItemTag.type, "f"));

/** A header that claims a payload of `length`. */
function header(length: number, version = 1): Buffer {
  const bytes = encodeFrame(FrameType.stdout, 1, 1, Buffer.alloc(0)).subarray(0, headerBytes);
  bytes.writeUInt32BE(length, 16);
  bytes.writeUInt8(version, 2);
  return bytes;
}

const inTheWrongPlace: Record<string, (init: FakeInit, channel: number) => void> = {
  noise: (init) => init.raw(Buffer.from("HTTP/1.1 200 OK\r\n\r\n and more")),
  "a frame of another version": (init) => init.raw(header(0, 2)),
  "a header that claims 64 KiB and a byte": (init) => init.raw(header(maxPayloadBytes + 1)),
  "a header that claims 4 GiB": (init) => init.raw(header(0xffffffff)),
  "a wrong trailer": (init) => init.raw(Buffer.concat([header(4), Buffer.alloc(8)])),
  "output of a channel never opened": (init) => init.say(FrameType.stdout, 77, Buffer.of(1)),
  "an exit of a channel never opened": (init) => init.say(FrameType.exit, 77, exit(1, 0, 0)),
  "output after the exit": (init, channel) => {
    init.say(FrameType.exit, channel, exit(1, 0, 0));
    init.say(FrameType.stdout, channel, Buffer.of(1));
  },
  "a second exit": (init, channel) => {
    init.say(FrameType.exit, channel, exit(1, 0, 0));
    init.say(FrameType.exit, channel, exit(1, 0, 0));
  },
  "a second start": (init, channel) => {
    init.say(FrameType.started, channel, number(StartedTag.pid, 7));
    init.say(FrameType.started, channel, number(StartedTag.pid, 7));
  },
  "a start without a pid": (init, channel) => init.say(FrameType.started, channel),
  "an empty output frame": (init, channel) => init.say(FrameType.stdout, channel),
  "file data for a command": (init, channel) => init.say(FrameType.data, channel, Buffer.of(1)),
  "a DONE for a command": (init, channel) => init.say(FrameType.done, channel),
  "credit for stdin that was never sent": (init, channel) =>
    init.say(FrameType.stdinCredit, channel, number(CreditTag.bytes, 1)),
  "a worker's own frame": (init, channel) => init.say(FrameType.exec, channel),
  "an unknown type": (init, channel) => init.say(0xff, channel),
  "an unknown type for the connection": (init) => init.say(0xff, 0),
  "an exit that says nothing": (init, channel) => init.say(FrameType.exit, channel),
  "an exit of an unknown kind": (init, channel) => init.say(FrameType.exit, channel, exit(3, 0, 0)),
  "an exit code of 256": (init, channel) => init.say(FrameType.exit, channel, exit(1, 256, 0)),
  "a death by signal 65": (init, channel) => init.say(FrameType.exit, channel, exit(2, 65, 0)),
  "an exit for an unknown reason": (init, channel) => init.say(FrameType.exit, channel, exit(1, 0, 9)),
  "a number of three bytes": (init, channel) =>
    init.say(FrameType.exit, channel, new RecordWriter().add(ExitTag.kind, Buffer.alloc(3)).finish()),
  "a number past 2^53": (init, channel) =>
    init.say(FrameType.exit, channel, new RecordWriter().add(ExitTag.kind, Buffer.alloc(8, 0xff)).finish()),
  "a record that runs past its payload": (init, channel) =>
    init.say(FrameType.exit, channel, Buffer.from([1, 0, 0, 1, 0, 7])),
  "an epoch past 2^53": (init, channel) => {
    const frame = encodeFrame(FrameType.stdout, channel, 1, Buffer.of(1));
    frame.writeBigUInt64BE(0xffffffffffffffffn, 8);
    init.raw(frame);
  },
  "a pong that no ping asked for": (init) => init.say(FrameType.pong, 0),
  "a second answer to the hello": (init) => init.acknowledge(),
};

describe("command whose init sends", () => {
  test.each(Object.keys(inTheWrongPlace))(
    "a command whose init sends %s ends, and the connection is closed as a breach of protocol",
    async (what) => {
      const { link, init } = await talk(
        turning((fake, { channel }) => inTheWrongPlace[what]?.(fake, channel)),
      );
      const execution = link.exec(command);
      expect(await link.closed).toMatchObject({ why: "protocol" });
      expect(await execution.end).toBeDefined();
      expect(init.ended).toBe(true);
    },
  );
});

describe("file operation", () => {
  const listing = (answer: (init: FakeInit, channel: number) => void) =>
    talk(turning((fake, { channel }) => answer(fake, channel)));

  test("a file operation refuses an answer with more entries than it asked for", async () => {
    const { link } = await listing((init, channel) => {
      for (let count = 0; count < 11; count++) init.say(FrameType.items, channel, entry(`file-${count}`));
    });
    await expect(link.files.list("", { maxItems: 10 })).rejects.toMatchObject({ code: "init-protocol" });
  });

  test("a file operation refuses an answer with paths longer than a path can be", async () => {
    const { link } = await listing((init, channel) => {
      init.say(FrameType.items, channel, entry("x".repeat(60_000)));
      init.say(FrameType.done, channel, number(DoneTag.count, 1));
    });
    await expect(link.files.list("")).rejects.toMatchObject({ code: "init-protocol" });
  });

  test("a file operation refuses an answer with a cut item, and data that it did not ask for", async () => {
    const cut = await listing((init, channel) =>
      init.say(FrameType.items, channel, entry("name").subarray(0, 9)),
    );
    await expect(cut.link.files.list("")).rejects.toMatchObject({ code: "init-protocol" });
    const data = await listing((init, channel) => init.say(FrameType.data, channel, Buffer.of(1)));
    await expect(data.link.files.stat("x")).rejects.toMatchObject({ code: "init-protocol" });
  });

  test("a file operation refuses an answer with more bytes than it asked for", async () => {
    const { link } = await listing((init, channel) => {
      init.say(FrameType.data, channel, Buffer.alloc(1_001));
      init.say(FrameType.done, channel, number(DoneTag.size, 1_001));
    });
    await expect(link.files.read("x", { maxBytes: 1_000 })).rejects.toThrow("more bytes than were asked for");
  });

  test("a file operation that init never answers ends at its deadline, and so do stats and a disk usage", async () => {
    const { link } = await talk();
    const outcomes = await Promise.allSettled([
      link.files.read("x"),
      link.files.list(""),
      link.usage({ maxEntries: 10 }),
      link.stats(),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill("rejected"));
  });

  test("a file operation refuses packed entries that are cut, were not asked for, or are too large", async () => {
    const piece = (bytes: Uint8Array) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return Buffer.concat([length, bytes]);
    };
    const end = Buffer.alloc(4);
    const large = Buffer.concat([entry("x"), piece(Buffer.alloc(600)), piece(Buffer.alloc(600)), end]);
    const streams: Buffer[] = [
      entry("x"),
      Buffer.concat([entry("x"), piece(Buffer.alloc(10))]),
      Buffer.concat([entry("x"), Buffer.from([0xff, 0xff, 0xff, 0xff])]),
      Buffer.from([0, 0, 0, 9, 1]),
      large,
      Buffer.concat(Array.from({ length: 4 }, () => Buffer.concat([entry("x"), end]))),
      Buffer.concat([entry("x".repeat(9_000)), end]),
    ];
    for (const stream of streams) {
      const { link } = await talk(
        turning((fake, { channel }) => {
          fake.say(FrameType.data, channel, stream);
          fake.say(FrameType.done, channel);
        }),
      );
      const reading = link.files.readMany(["x"], { maxBytes: 1_000, maxItems: 3 });
      await expect(reading).rejects.toMatchObject({ code: "init-protocol" });
      expect(await link.closed).toMatchObject({ why: "protocol" });
    }
  });

  test("a file operation refuses an answer with more refusals than the archive has entries, or with invalid names", async () => {
    const refusal = (path: string, text = "") =>
      item(
        new RecordWriter().add(ItemTag.path, path).add(ItemTag.code, "\u001b[2Jx").add(ItemTag.text, text),
      );
    const room = { budgetBytes: 1_000, budgetEntries: 10 };
    const bad = [
      Buffer.concat([refusal("x"), refusal("y")]),
      refusal("x".repeat(9_000)),
      refusal("x", "t".repeat(2_000)),
    ];
    for (const items of bad) {
      const { link } = await talk(turning((fake, { channel }) => fake.say(FrameType.items, channel, items)));
      await expect(link.files.unpack(Buffer.alloc(512), room)).rejects.toMatchObject({
        code: "init-protocol",
      });
    }
    const done = new RecordWriter().add(DoneTag.count, 1).add(DoneTag.bytes, 1).finish();
    const { link } = await talk(
      turning((fake, { channel }) => {
        fake.say(FrameType.items, channel, refusal("x"));
        fake.say(FrameType.done, channel, done);
      }),
    );
    const { refused } = await link.files.writeMany([{ path: "x", bytes: Buffer.alloc(1) }], room);
    expect(refused[0]?.refusal.message).toMatch(/^[\u0020-\u007e]{1,200}$/);
  });

  test("a file operation's failure has a short, printable text, also from a hostile init", async () => {
    const { link } = await listing((init, channel) =>
      init.say(
        FrameType.fail,
        channel,
        new RecordWriter()
          .add(FailTag.code, "io")
          .add(FailTag.message, `\u001b[2J\n${"x".repeat(60_000)}`)
          .finish(),
      ),
    );
    const error = await link.files.stat("x").catch((caught: Error) => caught);
    expect(error).toMatchObject({ code: "file-operation-failed" });
    expect(String(error)).toMatch(/^[\u0020-\u007e]{1,2000}$/);
  });
});

describe("at the hello", () => {
  const ending = async (answer: Answer): Promise<[unknown, LinkEnd]> => {
    const connection = connectionTo(new FakeInit(answer));
    const failure = await connection.open().catch((error: unknown) => error);
    return [failure, await connection.closed];
  };

  test("an answer to the hello with a wrong nonce is ignored", async () => {
    const [failure, end] = await ending((_, init) => {
      init.nonce = Buffer.alloc(16, 1);
      init.acknowledge();
    });
    expect(failure).toMatchObject({ code: "init-unresponsive" });
    expect(end).toEqual({ why: "unresponsive", waitedMs: 300 });
  });

  test("an answer to the hello with a lower epoch is ignored", async () => {
    const [failure] = await ending((_, init) =>
      init.say(FrameType.helloAck, 0, new RecordWriter().add(HelloAckTag.nonce, init.nonce).finish(), 0),
    );
    expect(failure).toMatchObject({ code: "init-unresponsive" });
  });

  test("an init with a higher epoch, or a FENCED from an open link, makes the holder stop", async () => {
    const [failure] = await ending((_, init) =>
      init.say(FrameType.helloAck, 0, new RecordWriter().add(HelloAckTag.nonce, init.nonce).finish(), 9),
    );
    expect(failure).toMatchObject({ code: "fenced", context: { highestEpoch: 9 } });
    const { link } = await talk(
      turning((init) => init.say(FrameType.fenced, 0, number(FencedTag.epoch, 12))),
    );
    void link.exec(command);
    expect(await link.closed).toEqual({ why: "fenced", highestEpoch: 12 });
  });

  test("an impossible list of running commands in the hello's answer closes the link", async () => {
    const [failure] = await ending((_, init) =>
      init.acknowledge((ack) => ack.add(HelloAckTag.running, Buffer.alloc(5))),
    );
    expect(failure).toMatchObject({ code: "init-protocol" });
    const [tooMany] = await ending((_, init) =>
      init.acknowledge((ack) =>
        ack.addAll(
          HelloAckTag.running,
          Array.from({ length: 4_000 }, () => Buffer.alloc(8)),
        ),
      ),
    );
    expect(tooMany).toMatchObject({ code: "init-protocol" });
  });
});

describe("worker does not grow", () => {
  const hundredMiB = 1600;

  test("the worker's memory stays bounded under a hundred megabytes of noise before the hello", async () => {
    const init = new FakeInit(() => {});
    const opening = connectionTo(init)
      .open()
      .catch((error: unknown) => error);
    const growth = await growthOf(async () => {
      for (let round = 0; round < hundredMiB; round++) init.raw(Buffer.alloc(65_536, round));
    });
    expect(growth.retainedMiB).toBeLessThan(5);
    expect(await opening).toMatchObject({ code: "init-unresponsive" });
  });

  test("the worker's memory stays bounded under a hundred megabytes of frames of an old epoch", async () => {
    const { init, link } = await talk();
    const growth = await growthOf(async () => {
      for (let round = 0; round < hundredMiB; round++) init.say(FrameType.stdout, 5, Buffer.alloc(65_536), 0);
    });
    expect(growth.retainedMiB).toBeLessThan(5);
    expect(await Promise.race([link.closed, "open"])).toBe("open");
  });

  test("the worker closes a link that sends more output than the credit allows, and its memory stays bounded", async () => {
    const stuck = Promise.withResolvers<void>();
    const { init, link } = await talk();
    const execution = link.exec({ ...command, onOutput: () => stuck.promise });
    const growth = await growthOf(async () => {
      for (let round = 0; round < hundredMiB; round++) init.say(FrameType.stdout, 2, Buffer.alloc(65_536));
    });
    expect(await link.closed).toEqual({ why: "protocol", detail: "more output than the credit allows" });
    expect(growth.retainedMiB).toBeLessThan(5);
    stuck.resolve();
    expect(await execution.end).toMatchObject({ kind: "broken" });
  });

  test("the worker's memory stays bounded for unread output in single bytes", async () => {
    const stuck = Promise.withResolvers<void>();
    const { init, link } = await talk();
    const execution = link.exec({ ...command, onOutput: () => stuck.promise });
    const growth = await growthOf(async () => {
      for (let round = 0; round < 400_000; round++) init.say(FrameType.stdout, 2, Buffer.of(1));
    });
    expect(growth.retainedMiB).toBeLessThan(32);
    stuck.resolve();
    link.close();
    await execution.end;
  });

  test("the worker's memory stays bounded by a file's size when the file comes in single bytes", async () => {
    const { link } = await talk(
      turning((init, { channel }) => {
        let sent = 0;
        const more = () => {
          const frames = Array.from({ length: 2_000 }, () =>
            encodeFrame(FrameType.data, channel, 1, Buffer.of(1)),
          );
          init.raw(Buffer.concat(frames));
          sent += frames.length;
          if (sent < 600_000) setImmediate(more);
          else init.say(FrameType.done, channel, number(DoneTag.size, sent));
        };
        more();
      }),
    );
    const patient = new InitLink(open.at(-1) as InitConnection, { ...who, deadlineMs: 30_000 });
    const growth = await growthOf(() => patient.files.read("x"));
    expect(growth.peakMiB).toBeLessThan(100);
    link.close();
  });
});

describe("worker whose lease is over", () => {
  test("a worker whose lease is over sends no command", async () => {
    const said: number[] = [];
    const init = new FakeInit((frame, self) => {
      said.push(frame.type);
      honest(frame, self);
    });
    let leftMs = 5_000;
    const options = { ...who, leaseMs: 5_000, leaseLeftMs: () => leftMs, deadlineMs: 300, resync: false };
    const connection = new InitConnection(init, options);
    open.push(connection);
    await connection.open();
    leftMs = 0;
    const execution = connection.exec(command);
    expect(await execution.end).toMatchObject({ kind: "refused", code: "lease-over" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(said).not.toContain(FrameType.exec);
  });
});
