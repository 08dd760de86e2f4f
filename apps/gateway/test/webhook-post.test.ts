import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { allowedNetworks } from "@berth/egress";
import { expect, onTestFinished, test } from "vitest";
import { post } from "../src/webhooks/post.ts";

/** An address that answers just these bytes, and ends. */
async function receiver(answer: string): Promise<URL> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket.on("error", () => {}));
    socket.once("data", () => socket.end(Buffer.from(answer, "latin1")));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

test.for([
  "HTTP/1.1 101 a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi",
  "HTTP/1.1 100 \x01\r\n\r\n",
  "HTTP/1.1 103 \x01\r\nLink: \x01\r\n\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
  "\0\xff",
  "",
])("a webhook ends with an error after an answer that is none: %j", async (answer) => {
  const to = await receiver(answer);
  await expect(post(to, "{}", {}, allowedNetworks("127.0.0.0/8"))).rejects.toThrow();
});

test("a webhook's answer may have any bytes as its reason", async () => {
  const to = await receiver("HTTP/1.1 204 \x01\xff\r\n\r\n");
  expect(await post(to, "{}", {}, allowedNetworks("127.0.0.0/8"))).toBe(204);
});
