import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { Init, isRoot } from "./support/init-process.ts";
import { Decoder, type Frame, frame, Records, records, Type, type Value } from "./support/wire.ts";

const name = "0123456789abcdef";
const initProof = randomBytes(16);
const workerProof = randomBytes(16);
const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** The worker's end of a link: the frames that init sent there, and a way to answer. */
class Peer {
  readonly frames: Frame[] = [];
  ended = false;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    const decoder = new Decoder();
    this.#socket = socket;
    socket.on("data", (bytes) => this.frames.push(...decoder.push(bytes)));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.ended = true;
    });
  }

  send(type: number, payload: Buffer, channel = 0): void {
    this.#socket.write(frame(type, channel, 1n, payload));
  }

  end(): void {
    this.#socket.destroy();
  }
}

interface Place {
  readonly init: Init;
  readonly peers: Peer[];
  readonly directory: string;
}

async function place(): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), "init-link-"));
  chmodSync(directory, 0o755);
  const peers: Peer[] = [];
  const server = createServer((socket) => peers.push(new Peer(socket)));
  await new Promise<void>((resolve) => server.listen(join(directory, name), resolve));
  closing.push(() => {
    for (const peer of peers) peer.end();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { init: await Init.start({ link: directory }), peers, directory };
}

function offer(init: Init, ...more: [number, Value | undefined][]): void {
  const pairs = more.length > 0 ? more : full;
  init.send(Type.LINK, 0, records(...pairs));
}
const full: [number, Value][] = [
  [1, name],
  [2, initProof],
  [3, workerProof],
];

/** The errno that init gives over stdout for having no link. */
async function refusal(init: Init): Promise<number | undefined> {
  const answer = await init.nextControl((found) => found.type === Type.LINKED);
  return new Records(answer.payload).number(2);
}

async function linked(): Promise<Place & { readonly peer: Peer }> {
  const all = await place();
  offer(all.init);
  await all.init.until(() => (all.peers[0]?.frames.length ?? 0) > 0, "init's proof");
  const peer = all.peers[0] as Peer;
  peer.send(Type.LINK_PROOF, records([3, workerProof]));
  await all.init.until(() => peer.frames.length > 1, "LINKED");
  return { ...all, peer };
}

describe("link", () => {
  test("a link is proven by both ends, and then carries requests and answers in the place of stdio", async () => {
    const { init, peer } = await linked();
    const [proof, confirmed] = peer.frames;
    expect(proof?.type).toBe(Type.LINKED);
    expect(new Records(proof?.payload as Buffer).raw(1)).toEqual(initProof);
    expect(confirmed).toMatchObject({ type: Type.LINKED, channel: 0 });
    expect(confirmed?.payload).toHaveLength(0);
    peer.send(Type.EXEC, init.execPayload(["sh", "-c", "echo out; exit 4"]), 7);
    await init.until(() => peer.frames.at(-1)?.type === Type.EXIT, "EXIT over the link");
    const frames = peer.frames.filter(({ channel }) => channel === 7);
    expect(frames.map(({ type }) => type)).toEqual([Type.STARTED, Type.STDOUT, Type.EXIT]);
    expect(new Records(frames.at(-1)?.payload as Buffer).number(2)).toBe(4);
    expect(init.control).toEqual([]);
  });

  test("a link that ends leaves commands running, and the next HELLO over stdin finds them", async () => {
    const { init, peer } = await linked();
    peer.send(Type.EXEC, init.execPayload(["sleep", "1000"]), 7);
    await init.until(() => peer.frames.some(({ type }) => type === Type.STARTED), "STARTED");
    peer.end();
    const running = (await init.hello(60_000, 2n)).all(3);
    expect(running.map((entry) => entry.readUInt32BE(0))).toEqual([7]);
    const leftover = init.channel(7);
    leftover.kill();
    expect((await leftover.exit()).reason).toBe(2);
  });

  test("a link is given up by a HELLO over stdin, and can then be made anew", async () => {
    const { init, peer, peers } = await linked();
    await init.hello(60_000, 2n);
    await init.until(() => peer.ended, "the end of the first link");
    expect(await init.ping()).toBe("ping");
    init.send(Type.LINK, 0, records(...full));
    await init.until(() => (peers[1]?.frames.length ?? 0) > 0, "the second link");
  });

  test("a link carries no HELLO and no LINK: those count over stdin only", async () => {
    const { init, peer } = await linked();
    peer.send(Type.HELLO, records([1, randomBytes(16)], [2, 60_000]));
    peer.send(Type.LINK, records(...full));
    peer.send(Type.PING, Buffer.from("after"));
    await init.until(() => peer.frames.at(-1)?.type === Type.PONG, "PONG");
    expect(peer.frames.map(({ type }) => type)).toEqual([Type.LINKED, Type.LINKED, Type.PONG]);
  });
});

describe("without the worker's proof", () => {
  const wrong: Record<string, (peer: Peer) => void> = {
    "another proof": (peer) => peer.send(Type.LINK_PROOF, records([3, randomBytes(16)])),
    "init's own proof": (peer) => peer.send(Type.LINK_PROOF, records([3, initProof])),
    "a command": (peer) => peer.send(Type.EXEC, records([1, "touch"], [1, "/tmp/never"])),
    nothing: (peer) => peer.end(),
  };
  test.each(Object.keys(wrong))(
    "a link that gets %s instead of the worker's proof ends, and stdio carries on",
    async (what) => {
      const { init, peers } = await place();
      offer(init);
      await init.until(() => (peers[0]?.frames.length ?? 0) > 0, "init's proof");
      wrong[what]?.(peers[0] as Peer);
      await init.until(() => peers[0]?.ended === true, "the end of the link");
      expect((await init.sh("exit 3").exit()).value).toBe(3);
      expect(peers[0]?.frames).toHaveLength(1);
    },
  );
});

describe("a link that cannot be is refused over stdout with an errno", () => {
  const offers: Record<string, [number, Value][]> = {
    "a name that leads elsewhere": [[1, "../0123"], ...full.slice(1)],
    "an empty name": [[1, ""], ...full.slice(1)],
    "a name that is too long": [[1, "a".repeat(33)], ...full.slice(1)],
    "a short proof": [full[0] as [number, Value], [2, "short"], full[2] as [number, Value]],
    "no proofs": [full[0] as [number, Value]],
  };
  const [eperm, einval, enoent, enotsup, eisconn] = [1, 22, 2, 95, 106];

  test.each(Object.keys(offers))("a link with %s is refused with EINVAL", async (what) => {
    const { init, peers } = await place();
    offer(init, ...(offers[what] ?? []));
    expect(await refusal(init)).toBe(einval);
    expect(peers).toEqual([]);
  });

  test("a link to a socket that is not there is refused with an errno", async () => {
    const { init } = await place();
    offer(init, [1, "abc"], ...full.slice(1));
    expect(await refusal(init)).toBe(enoent);
    expect(await init.ping()).toBe("ping");
  });

  test.runIf(isRoot)(
    "a link to a socket on which a process of the sandbox listens is refused with an errno",
    async () => {
      const { init, directory, peers } = await place();
      const listen = `import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("${directory}/abcdef"); s.listen(); print("listening", flush=True); time.sleep(1000)`;
      const run = init.exec(["python3", "-c", listen]);
      await run.output("listening");
      offer(init, [1, "abcdef"], ...full.slice(1));
      expect(await refusal(init)).toBe(eperm);
      expect(peers).toEqual([]);
      run.kill();
      await run.exit();
    },
  );

  test("without a link directory HELLO_ACK does not offer links", async () => {
    const init = await Init.start();
    expect((await init.hello()).number(9)).toBe(0);
    offer(init);
    expect(await refusal(init)).toBe(enotsup);
  });

  test("a second link is refused while there is one", async () => {
    const { init, peer } = await linked();
    offer(init);
    await init.until(() => peer.frames.length > 2, "the refusal");
    expect(new Records(peer.frames.at(-1)?.payload as Buffer).number(2)).toBe(eisconn);
  });
});

test("no command inherits the link", async () => {
  const { init, peer } = await linked();
  const script = "ls -l /proc/self/fd /proc/$$/fd | grep -c socket";
  peer.send(Type.EXEC, init.execPayload(["sh", "-c", script]), 7);
  await init.until(() => peer.frames.at(-1)?.type === Type.EXIT, "EXIT");
  const out = peer.frames.filter(({ type }) => type === Type.STDOUT).map(({ payload }) => payload.toString());
  expect(out.join("")).toBe("0\n");
});
