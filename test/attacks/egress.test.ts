import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { EgressGate, EgressProxy, type Resolver } from "@berth/egress";
import type { SandboxProfileInput } from "@berth/protocol";
import type { Sandbox } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { startRequest, type TestHost, test } from "../support/host.ts";
import { shown } from "../support/shown.ts";

const ceilings = { egressConnections: 16, egressBytesPerHour: 0, egressBytesPerSecond: 0 };

/** A site of this machine's loopback, and what reached it. */
async function site(text: string, movedTo?: string) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url ?? "");
    if (request.url === "/moved" && movedTo !== undefined) response.writeHead(302, { location: movedTo });
    response.end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, seen, [Symbol.asyncDispose]: async () => void server.close().closeAllConnections() };
}

/** A sandbox with a proxy of its own, as the worker gives it one. */
async function sandboxWith(
  host: TestHost,
  rules: readonly string[],
  { key = "acme", epoch = 1, resolve, driver = host.driver() }: Given = {},
) {
  const gate = new EgressGate({ rules, ceilings, report: () => {}, ...(resolve ? { resolve } : {}) });
  const proxy = new EgressProxy(gate, { headMs: 1_000 });
  const profile: SandboxProfileInput = { egress: [...rules] };
  const wayOut = { onConnection: (socket: Socket) => proxy.accept(socket) };
  const sandbox = await driver.start({ ...startRequest({ key, epoch, profile }), wayOut });
  const said = async (command: string) => {
    const result = shown(await sandbox.exec({ command, limits: { timeoutMs: 60_000 } }));
    return `${result.stdout}${result.stderr}`.trim();
  };
  return { sandbox, said, gate, [Symbol.asyncDispose]: () => end(sandbox) };
}

interface Given {
  readonly key?: string;
  readonly epoch?: number;
  readonly resolve?: Resolver;
  readonly driver?: ReturnType<TestHost["driver"]>;
}

async function end(sandbox: Sandbox): Promise<void> {
  await sandbox.stop();
}

/** Says bytes to the worker's socket itself, past the forwarder. */
const direct = (text: string) =>
  `python3 -c 'import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect("/.berth/link/egress"); s.sendall(${JSON.stringify(text)}.encode())
b=b""
while True:
  d=s.recv(65536)
  if not d: break
  b+=d
print(b.decode("latin1"))'`;

describe("tenant whose profile has egress rules", () => {
  test("a tenant whose profile has egress rules reaches the hosts that they name and no others, by any route", async ({
    host,
  }) => {
    await using secret = await site("secret");
    await using allowed = await site("welcome", `http://127.0.0.1:${secret.port}/`);
    let asked = 0;
    const resolve: Resolver = async () => {
      asked++;
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const rules = [`127.0.0.1:${allowed.port}`, `*.example:${secret.port}`];
    await using one = await sandboxWith(host, rules, { resolve });
    const { said } = one;
    const curl = (url: string, more = "") => said(`curl -sS -g -m 20 ${more} '${url}' || true`);
    expect(await curl(`http://127.0.0.1:${allowed.port}/a`)).toBe("welcome");
    expect(await curl(`http://127.0.0.1:${allowed.port}/b`, "--proxytunnel")).toBe("welcome");
    expect(await said("env | grep -i _proxy | sort")).toContain("HTTPS_PROXY=http://127.0.0.1:3128");

    // Raw addresses: there is no other network than the loopback of its own.
    expect(await curl(`http://127.0.0.1:${secret.port}/`, "--noproxy '*'")).toMatch(/refused|connect/i);
    expect(await curl("http://93.184.216.34/", "--noproxy '*' -m 3")).toMatch(/unreachable|connect/i);
    // Forms of addresses, names that lead inside, other ports.
    const nat64 = ["[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]"];
    const sixToFour = ["[2002:7f00:1::]", "[2002:7f00:1::1]", "[2001:0:7f00:1::]"];
    const plain = ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::1]", "[::ffff:127.0.0.1]"];
    for (const where of [...plain, ...nat64, ...sixToFour])
      expect(await curl(`http://127.0.0.1/`, `--request-target http://${where}:${secret.port}/`)).toMatch(
        /no rule for|refused|not in the egress rules/,
      );
    for (const where of [...nat64, ...sixToFour])
      expect(await said(direct(`CONNECT ${where}:${secret.port} HTTP/1.1\r\n\r\n`))).toMatch(
        /^HTTP\/1.1 40[03]/,
      );
    // A redirect is a request of its own.
    const moved = await curl(`http://127.0.0.1:${allowed.port}/moved`, "-L -w '\\n%{http_code}'");
    expect(moved).toMatch(/not in the egress rules[\s\S]*403$/);
    expect(await curl(`http://rebind.example:${secret.port}/`)).toMatch(/not a public address/);
    expect(asked).toBe(1);
    expect(await curl(`http://127.0.0.1:${secret.port}/`, "--proxytunnel")).toMatch(/403/);
    // The worker's socket itself obeys the same rules, and no other sandbox's is there.
    expect(await said(direct(`CONNECT 127.0.0.1:${secret.port} HTTP/1.1\r\n\r\n`))).toMatch(/^HTTP\/1.1 403/);
    expect(await said(direct(`GET http://127.0.0.1:${allowed.port}/c HTTP/1.1\r\nHost: x\r\n\r\n`))).toMatch(
      /welcome/,
    );
    expect(
      await said("ls -d /.berth/* /.berth/link/../*; rm -f /.berth/link/egress; ls /.berth/link/x"),
    ).toMatch(/cannot remove|Read-only|Permission|No such/);
    // A tunnel carries other protocols to that one place; a second request in it is the site's to answer.
    const twice = `CONNECT 127.0.0.1:${allowed.port} HTTP/1.1\r\n\r\nGET http://127.0.0.1:${secret.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
    expect(await said(direct(twice))).toMatch(/welcome/);
    // Slow and huge heads.
    expect(await said(direct("GET http://127"))).toMatch(/^HTTP\/1.1 408/);
    expect(await said(direct(`GET http://127.0.0.1/ HTTP/1.1\r\nX: ${"a".repeat(17_000)}\r\n\r\n`))).toMatch(
      /^HTTP\/1.1 431/,
    );
    expect(secret.seen).toEqual([]);

    // Killing the forwarder ends connections; init starts it again, and keeps its port meanwhile.
    // That kills idle keepers too, so a command soon after may be killed with its own.
    await said("pkill -9 init");
    await expect.poll(() => said(`curl -sS http://127.0.0.1:${allowed.port}/k || true`)).toBe("welcome");
  });

  test("a sandbox with egress rules reaches no other sandbox's proxy socket, and one without rules has none", async ({
    host,
  }) => {
    await using mine = await site("mine");
    await using theirs = await site("theirs");
    await using acme = await sandboxWith(host, [`127.0.0.1:${mine.port}`]);
    await using globex = await sandboxWith(host, [`127.0.0.1:${theirs.port}`], { key: "globex" });
    await using none = await host.sandbox({ key: "initech" });
    const get = (port: number) => `curl -sS -m 10 http://127.0.0.1:${port}/ || true`;
    expect(await acme.said(get(mine.port))).toBe("mine");
    expect(await acme.said(get(theirs.port))).toMatch(/not in the egress rules/);
    expect(await globex.said(get(mine.port))).toMatch(/not in the egress rules/);
    const tried = shown(
      await none.exec({
        command: `env | grep -ic proxy; ls /.berth/link; curl -sS -x 127.0.0.1:3128 http://a/`,
      }),
    );
    expect(tried.stdout).toBe("0\n");
    expect(tried.stderr).toMatch(/connect/i);
  });

  test("a sandbox with egress rules keeps its proxy when the next worker adopts the container", async ({
    host,
  }) => {
    await using allowed = await site("welcome");
    const rules = [`127.0.0.1:${allowed.port}`];
    const get = `curl -sS -m 10 http://127.0.0.1:${allowed.port}/`;
    const first = await sandboxWith(host, rules);
    expect(await first.said(get)).toBe("welcome");
    first.sandbox.detach();
    await using next = await sandboxWith(host, rules, { epoch: 2 });
    expect(next.sandbox.origin.how).toBe("adopted");
    expect(await next.said(get)).toBe("welcome");
  });
});
