import { once } from "node:events";
import { createServer as createHttp, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { test as base, describe, expect } from "vitest";
import { EgressGate, EgressProxy, type EgressReport, type Resolver } from "../src/index.ts";
import { isOwnAddress } from "../src/public-address.ts";

const ceilings = { egressConnections: 8, egressBytesPerHour: 0, egressBytesPerSecond: 0 };

interface Options {
  readonly rules: readonly string[];
  readonly resolve?: Resolver;
  readonly ceilings?: Partial<typeof ceilings>;
  readonly headMs?: number;
  readonly isOwn?: (address: string) => boolean;
}

/** A proxy as the worker makes one, behind a socket of the test's. */
class Fixture implements AsyncDisposable {
  readonly reports: EgressReport[] = [];
  readonly #stops: (() => void)[] = [];

  async proxy({ rules, resolve, ceilings: some, headMs, isOwn }: Options) {
    const gate = new EgressGate({
      rules,
      ceilings: { ...ceilings, ...some },
      report: (report) => this.reports.push(report),
      ...(resolve ? { resolve } : {}),
      ...(isOwn ? { isOwn } : {}),
    });
    const proxy = new EgressProxy(gate, headMs === undefined ? {} : { headMs });
    const port = await this.#listen(createServer({ allowHalfOpen: true }, (socket) => proxy.accept(socket)));
    this.#stops.push(() => proxy.stop());
    return { port, gate, proxy };
  }

  async site(listener: RequestListener): Promise<number> {
    return await this.#listen(createHttp(listener));
  }

  async raw(onSocket: (socket: Socket) => void): Promise<number> {
    return await this.#listen(createServer(onSocket));
  }

  async #listen(server: ReturnType<typeof createServer>): Promise<number> {
    const open = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      open.add(socket);
      socket.on("error", () => {});
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    this.#stops.push(() => {
      server.close();
      for (const socket of open) socket.destroy();
    });
    return (server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose]() {
    for (const stop of this.#stops.reverse()) stop();
  }
}

const test = base.extend<{ world: Fixture }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  world: async ({}, use) => {
    await using world = new Fixture();
    await use(world);
  },
});

/** All that comes back until the other side ends. */
async function say(port: number, text: string | Buffer): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(text);
  let back = "";
  socket.on("data", (chunk: Buffer) => {
    back += chunk.toString("latin1");
  });
  await once(socket, "close");
  return back;
}

const get = (url: string, more = "") => `GET ${url} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const statusOf = (answer: string) => Number(answer.slice(9, 12));

describe("egress proxy", () => {
  test("the egress proxy carries HTTP and tunnels to what a rule names, and names the missing rule", async ({
    world,
  }) => {
    const seen: string[] = [];
    const site = await world.site((request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.host} ${request.headers.connection}`);
      let size = 0;
      request.on("data", (chunk: Buffer) => {
        size += chunk.length;
      });
      request.on("end", () => response.end(`got ${size}`));
    });
    const { port, gate } = await world.proxy({ rules: [`127.0.0.1:${site}`] });
    const end = gate.meter.begin("job-1");
    const url = `http://127.0.0.1:${site}/a?b`;
    expect(await say(port, get(url))).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*got 0/);
    const posted = `POST ${url} HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`;
    expect(await say(port, posted)).toContain("got 5");
    const tunnel = `CONNECT 127.0.0.1:${site} HTTP/1.1\r\n\r\n${get("/inside", "Connection: close\r\n")}`;
    expect(await say(port, tunnel)).toMatch(/200 Connection established[\s\S]*got 0/);
    const host = `127.0.0.1:${site}`;
    expect(seen).toEqual([`GET /a?b ${host} close`, `POST /a?b ${host} close`, "GET /inside x close"]);
    const denied = await say(port, get("http://other.example/"));
    expect(denied).toMatch(/^HTTP\/1\.1 403 egress has no rule for other\.example:80/);
    expect(denied).toContain('Ask the operator to add "other.example:80"');
    const use = end();
    expect(use).toMatchObject({ shared: false, sentBytes: expect.any(Number) });
    expect(use?.hosts.find((one) => one.host === "other.example")).toMatchObject({ denied: 1, requests: 1 });
    expect(use?.hosts[0]).toMatchObject({ host: "127.0.0.1", port: site, requests: 3, denied: 0 });
    expect(world.reports).toMatchObject([{ jobs: ["job-1"], hosts: [{ port: site }, {}] }]);
  });

  test("the egress proxy connects to the address that it checked, and resolves a name once", async ({
    world,
  }) => {
    const site = await world.site((_, response) => response.end("inside"));
    const answers = [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["fe80::1%lo"]];
    let asked = 0;
    const resolve: Resolver = async () =>
      (answers[asked++] ?? ["93.184.216.34"]).map((address) => ({
        address,
        family: address.includes(":") ? 6 : 4,
      }));
    const { port } = await world.proxy({ rules: [`*:${site}`], resolve });
    for (const _ of answers) {
      const answer = await say(port, get(`http://rebind.example:${site}/`));
      expect(answer).toMatch(/^HTTP\/1\.1 403 [\s\S]*not a public address/);
    }
    expect(asked).toBe(answers.length);
    const named = await world.proxy({
      rules: [`rebind.example:${site}`, `127.0.0.1:${site}`],
      resolve: async () => [{ address: asked++ === 4 ? "127.0.0.1" : "10.0.0.1", family: 4 }],
    });
    expect(await say(named.port, get(`http://rebind.example:${site}/`))).toContain("inside");
    expect(asked).toBe(5);
  });

  test("a name that leads to a public address of the worker's own host is refused, unless a rule names that address", async ({
    world,
  }) => {
    const resolve: Resolver = async () => [{ address: "93.184.216.34", family: 4 }];
    const isOwn = (address: string) => address === "93.184.216.34";
    const one = await world.proxy({ rules: ["*:9"], resolve, isOwn });
    const refused = await say(one.port, "CONNECT own.example:9 HTTP/1.1\r\n\r\n");
    expect(refused).toMatch(/^HTTP\/1\.1 403 [\s\S]*this host's own/);
    for (const all of Object.values(networkInterfaces()))
      for (const { address } of all ?? []) expect(isOwnAddress(address), address).toBe(true);
    expect(isOwnAddress("93.184.216.34")).toBe(false);
    const site = await world.site((_, response) => response.end("named"));
    const named = await world.proxy({
      rules: ["*:9", `own.example:${site}`, `127.0.0.1:${site}`],
      resolve: async () => [{ address: "127.0.0.1", family: 4 }],
      isOwn: () => true,
    });
    expect(await say(named.port, get(`http://own.example:${site}/`))).toContain("named");
  });

  test("rules that no longer allow it end a tunnel that is open, and leave others open", async ({
    world,
  }) => {
    const [kept, gone] = [await world.raw(() => {}), await world.raw(() => {})];
    const { port, gate } = await world.proxy({ rules: [`127.0.0.1:${kept}`, `127.0.0.1:${gone}`] });
    const tunnel = async (to: number) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\n\r\n`);
      await once(socket, "data");
      return socket;
    };
    const [open, ended] = [await tunnel(kept), await tunnel(gone)];
    const closed = once(ended, "close");
    gate.replace([`127.0.0.1:${kept}`], ceilings);
    await closed;
    expect(open.closed).toBe(false);
    open.destroy();
  });

  test("the egress proxy refuses every other spelling of an address", async ({ world }) => {
    let reached = 0;
    const site = await world.site((_, response) => {
      reached++;
      response.end();
    });
    const resolve: Resolver = async () => {
      throw new Error("a spelling came to the resolver");
    };
    const { port } = await world.proxy({ rules: ["*", `*:${site}`], resolve });
    const hosts = [
      ...[
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
      ],
      ...["127.0.0.1.", "0", "0.0.0.0", "169.254.169.254", "10.0.0.1", "100.100.100.200", "224.0.0.1"],
      ...["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"],
      ...["[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fe80::1%25lo]", "[fe80::1%lo]", "[fc00::1]"],
      ...["user@127.0.0.1", "allowed.example@127.0.0.1", "127.0.0.1#@allowed.example", "a\\@127.0.0.1"],
      ...["127.0.0.1%00.example", "１２７.0.0.1", "①②⑦.0.0.1", "allowed.example..", ".example", "a b"],
    ];
    for (const host of hosts) {
      for (const request of [get(`http://${host}:${site}/`), `CONNECT ${host}:${site} HTTP/1.1\r\n\r\n`]) {
        const answer = await say(port, request);
        expect([400, 403], `${host}: ${answer}`).toContain(statusOf(answer));
      }
    }
    expect(reached).toBe(0);
  });

  test("the egress proxy checks each redirect, other port and other scheme anew", async ({ world }) => {
    const inner = await world.site((_, response) => response.end("secret"));
    const site = await world.site((_, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${inner}/` }).end(),
    );
    const { port } = await world.proxy({ rules: [`127.0.0.1:${site}`] });
    const first = await say(port, get(`http://127.0.0.1:${site}/`));
    expect(first).toMatch(/^HTTP\/1\.1 302/);
    const [, to = ""] = /location: (\S+)/i.exec(first) ?? [];
    expect(statusOf(await say(port, get(to)))).toBe(403);
    expect(await say(port, `CONNECT 127.0.0.1:${inner} HTTP/1.1\r\n\r\n`)).toContain("403");
    for (const url of [`https://127.0.0.1:${site}/`, "/", "ftp://127.0.0.1/", `http:/127.0.0.1:${site}/`])
      expect(statusOf(await say(port, get(url))), url).toBe(400);
    for (const to of [`127.0.0.1:0`, "127.0.0.1:65536", "127.0.0.1", "127.0.0.1:http"])
      expect(statusOf(await say(port, `CONNECT ${to} HTTP/1.1\r\n\r\n`)), to).toBe(400);
  });

  test("the egress proxy passes on no request that two programs could read differently", async ({
    world,
  }) => {
    let bytes = "";
    const site = await world.raw((socket) => {
      socket.on("data", (chunk: Buffer) => {
        bytes += chunk.toString("latin1");
        if (bytes.includes("\r\n\r\n")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      });
    });
    const { port } = await world.proxy({ rules: [`127.0.0.1:${site}`] });
    const start = `POST http://127.0.0.1:${site}/ HTTP/1.1\r\nHost: x\r\n`;
    const bad = [
      `${start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n`,
      `${start}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      `${start}X: a\r\n b\r\n\r\n`,
      `${start}X: a\nY: b\r\n\r\n`,
      `POST http://127.0.0.1:${site}/ HTTP/1.1\nHost: x\n\n`,
      `${start}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      `${start}X : a\r\n\r\n`,
      `${start}X: ${"a".repeat(20_000)}\r\n\r\n`,
    ];
    for (const request of bad) {
      const answer = await say(port, request);
      expect([400, 431], `${request.slice(0, 120)} → ${answer}`).toContain(statusOf(answer));
    }
    expect(bytes).toBe("");
    // A second request behind the first goes nowhere.
    const two = get(`http://127.0.0.1:${site}/one`) + get(`http://127.0.0.1:${site}/two`);
    await say(port, two);
    expect(bytes.match(/^GET/gm)).toHaveLength(1);
  });

  test("the egress proxy ends those that send slowly, and holds each sandbox to its ceilings", async ({
    world,
  }) => {
    const site = await world.site((_, response) => response.end("x".repeat(300_000)));
    const rules = [`127.0.0.1:${site}`];
    const slow = await world.proxy({ rules, headMs: 300 });
    expect(statusOf(await say(slow.port, "GET http://127.0.0.1"))).toBe(408);
    const few = await world.proxy({ rules, ceilings: { egressConnections: 2 } });
    const held = [connect(few.port, "127.0.0.1"), connect(few.port, "127.0.0.1")];
    for (const socket of held) await once(socket, "connect");
    expect(await say(few.port, get(`http://127.0.0.1:${site}/`))).toMatch(/429 [\s\S]*egressConnections/);
    for (const socket of held) socket.destroy();
    const url = `http://127.0.0.1:${site}/`;
    await expect.poll(() => say(few.port, get(url)).then(statusOf)).toBe(200);
    const hour = await world.proxy({ rules, ceilings: { egressBytesPerHour: 100_000 } });
    const cut = await say(hour.port, get(url));
    expect(cut.length).toBeLessThan(300_000);
    expect(await say(hour.port, get(url))).toMatch(/429 [\s\S]*egressBytesPerHour/);
    const paced = await world.proxy({ rules, ceilings: { egressBytesPerSecond: 400_000 } });
    const startedMs = performance.now();
    expect((await say(paced.port, get(url))).length).toBeGreaterThan(300_000);
    expect(performance.now() - startedMs).toBeGreaterThan(400);
  });
});
