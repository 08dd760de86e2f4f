import { mkdir, mkdtemp, open, readdir, rm, symlink } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeFrame, FrameType, LinkedTag, LinkTag, Records, RecordWriter } from "@berth/init";
import { test as base, expect } from "vitest";
import { LinkListener } from "../src/init/link-listener.ts";

interface Place {
  readonly directory: string;
  readonly listener: LinkListener;
  /** What only init knows. */
  readonly name: string;
  readonly proof: Buffer;
  connect(bytes: Uint8Array): Socket;
}

const test = base.extend<{ place: Place }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  place: async ({}, use) => {
    // Longer than a socket's path may be.
    const root = await mkdtemp(join(tmpdir(), "berth-listener-"));
    const directory = join(root, "a".repeat(120));
    await mkdir(directory);
    const listener = await LinkListener.open({ directory, owner: undefined }, 5);
    const offer = new Records(listener.offer);
    const name = offer.text(LinkTag.name) ?? "";
    const peers: Socket[] = [];
    const folder = await open(directory);
    await use({
      directory,
      listener,
      name,
      proof: linked(offer.bytes(LinkTag.initProof) ?? Buffer.alloc(0)),
      connect: (bytes) => {
        // As short as the container's own path is.
        const peer = connect({ path: join("/proc/self/fd", String(folder.fd), name) });
        peers.push(peer.on("error", () => {}));
        peer.write(bytes);
        return peer.resume();
      },
    });
    for (const peer of peers) peer.destroy();
    await listener.close();
    await folder.close();
    await rm(root, { recursive: true });
  },
});

const linked = (proof: Buffer) =>
  encodeFrame(FrameType.linked, 0, 5, new RecordWriter().add(LinkedTag.proof, proof).finish());

/** Reset or ended. */
const closed = (peer: Socket) =>
  new Promise<void>((resolve) => (peer.closed ? resolve() : peer.once("close", () => resolve())));

test("the first peer with the proof is accepted, also after peers without it", async ({ place }) => {
  const { listener, proof } = place;
  const strangers = [
    place.connect(linked(Buffer.alloc(16))),
    place.connect(Buffer.alloc(1_000_000)),
    place.connect(Buffer.concat([proof, Buffer.of(0)])),
  ];
  await Promise.all(strangers.map((stranger) => closed(stranger)));
  const silent = place.connect(Buffer.alloc(0));
  // In two pieces.
  const init = place.connect(proof.subarray(0, 20));
  init.write(proof.subarray(20));
  const accepted = await listener.accepted;
  expect(accepted).toBeDefined();
  const heard: string[] = [];
  accepted?.listen({ onBytes: (bytes) => heard.push(String(bytes)), onDrain: () => {}, onEnd: () => {} });
  init.write("over the link");
  await expect.poll(() => heard.join("")).toBe("over the link");
  await listener.close();
  await closed(silent);
  accepted?.destroy();
});

test("closing removes the socket, and a second peer with the same proof is turned away", async ({
  place,
}) => {
  const { listener, proof, directory } = place;
  place.connect(proof);
  const second = place.connect(proof);
  expect(await listener.accepted).toBeDefined();
  await closed(second);
  expect(await readdir(directory)).toHaveLength(1);
  await listener.close();
  expect(await readdir(directory)).toEqual([]);
});

test("after eight strangers no peer is accepted any more", async ({ place }) => {
  for (let count = 0; count < 8; count++) await closed(place.connect(Buffer.alloc(100)));
  expect(await place.listener.accepted).toBeUndefined();
  await closed(place.connect(place.proof));
});

test("a directory that is a link is not listened in", async ({ place }) => {
  const link = join(place.directory, "link");
  await symlink("/tmp", link);
  await expect(LinkListener.open({ directory: link, owner: undefined }, 1)).rejects.toMatchObject({
    code: "ENOTDIR",
  });
});
