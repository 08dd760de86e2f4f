import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import { test } from "../support/gateway.ts";
import { raw } from "../support/raw-http.ts";

test("a body that trickles behind its answer, on a route that reads none, keeps its connection for ten seconds only", {
  timeout: 60_000,
}, async ({ gateways }) => {
  const gateway = await gateways.start();
  const head = (extra: string) => `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${extra}\r\n\r\n`;
  const trickles = [
    [head("Content-Length: 1000000"), ...Array(80).fill("x")],
    [head("Transfer-Encoding: chunked"), ...Array(80).fill("1\r\nx\r\n")],
  ];
  const answers = await Promise.all(
    trickles.map((pieces) => raw(gateway.port, pieces, { pauseMs: 500, maxMs: 40_000 })),
  );
  for (const { status, ms } of answers) {
    expect(status).toBe(200);
    expect(ms).toBeLessThan(35_000);
  }
});

test("more connections than a gateway may have are closed, and there is room again when others go", async ({
  gateways,
}) => {
  const gateway = await gateways.start({ BERTH_GATEWAY_CONNECTIONS: "4" });
  const open: Socket[] = [];
  const idle = async () => {
    const socket = connect(gateway.port, "127.0.0.1");
    open.push(socket);
    await once(socket, "connect");
  };
  try {
    for (let count = 0; count < 4; count++) await idle();
    const request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    expect((await raw(gateway.port, request)).text).toBe("");
    for (const socket of open) socket.destroy();
    const status = async () => (await raw(gateway.port, request)).status;
    await expect.poll(status, { timeout: 20_000 }).toBe(200);
  } finally {
    for (const socket of open) socket.destroy();
  }
});
