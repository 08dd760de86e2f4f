import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { download, EgressGate, EgressProxy } from "../src/index.ts";

const ceilings = { egressConnections: 8, egressBytesPerHour: 0, egressBytesPerSecond: 0 };
const servers: Server[] = [];
const sockets = new Set<Socket>();

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  for (const socket of sockets) socket.destroy();
});

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onSocket(socket);
  });
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** An allowed site that answers just these bytes to every request. */
async function worldOf(answer: string, cut?: number) {
  let open = 0;
  const site = await listen((socket) => {
    open++;
    socket.on("close", () => open--);
    socket.once("data", () => {
      const bytes = Buffer.from(answer, "latin1");
      socket.setNoDelay(true);
      socket.write(bytes.subarray(0, cut), () => socket.end(bytes.subarray(cut ?? bytes.length)));
    });
  });
  const gate = new EgressGate({ rules: [`127.0.0.1:${site}`], ceilings, report: () => {} });
  const proxy = new EgressProxy(gate);
  const port = await listen((socket) => proxy.accept(socket));
  const url = `http://127.0.0.1:${site}/`;
  const ask = async (method = "GET") => {
    const socket = connect(port, "127.0.0.1");
    sockets.add(socket);
    socket.on("error", () => {});
    socket.write(`${method} ${url} HTTP/1.1\r\nHost: x\r\n\r\n`);
    let back = "";
    socket.on("data", (chunk: Buffer) => {
      back += chunk.toString("latin1");
    });
    await once(socket, "close");
    return back;
  };
  return { gate, url, ask, openOutside: () => open };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what may not be there
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;
const ok = "HTTP/1.1 200 OK\r\n";
const sound = { "no reason": "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi" };
const hostile: Readonly<Record<string, string>> = {
  "a control byte in the reason": "HTTP/1.1 200 \x01\r\nContent-Length: 2\r\n\r\nhi",
  "an escape in the reason": "HTTP/1.1 200 \x1b[2J\r\nContent-Length: 2\r\n\r\nhi",
  "DEL in the reason": "HTTP/1.1 404 \x7f\r\nContent-Length: 2\r\n\r\nhi",
  "high bytes in the reason": "HTTP/1.1 200 \xff\xfe\x80\r\nContent-Length: 2\r\n\r\nhi",
  "a NUL in the reason": "HTTP/1.1 200 \0\r\nContent-Length: 2\r\n\r\nhi",
  "a bare CR in the reason": "HTTP/1.1 200 a\rb\r\nContent-Length: 2\r\n\r\nhi",
  "a long reason": `HTTP/1.1 200 ${"x".repeat(15_000)}\r\nContent-Length: 2\r\n\r\nhi`,
  "status 000": "HTTP/1.1 000 \r\nContent-Length: 2\r\n\r\nhi",
  "status 001": "HTTP/1.1 001 a\r\nContent-Length: 2\r\n\r\nhi",
  "status 099": "HTTP/1.1 099 a\r\nContent-Length: 2\r\n\r\nhi",
  "status 199": "HTTP/1.1 199 a\r\nContent-Length: 2\r\n\r\nhi",
  "status 600": "HTTP/1.1 600 a\r\nContent-Length: 2\r\n\r\nhi",
  "status 999": "HTTP/1.1 999 a\r\nContent-Length: 2\r\n\r\nhi",
  "status 1000": "HTTP/1.1 1000 a\r\n\r\n",
  "a negative status": "HTTP/1.1 -1 a\r\n\r\n",
  "an upgrade without a request for one": "HTTP/1.1 101 a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi",
  "101 without an upgrade": "HTTP/1.1 101 a\r\n\r\nhi",
  "continue without an end": "HTTP/1.1 100 \x01\r\n\r\n".repeat(50),
  "early hints with bad links": `HTTP/1.1 103 \x01\r\nLink: \x01<>\r\n\r\n${ok}Content-Length: 0\r\n\r\n`,
  "a header with a control byte": `${ok}X: a\x01b\r\nContent-Length: 0\r\n\r\n`,
  "a header with DEL": `${ok}X: a\x7fb\r\nContent-Length: 0\r\n\r\n`,
  "a header with high bytes": `${ok}X: \xff\xfe\r\nContent-Length: 0\r\n\r\n`,
  "a header name with a space": `${ok}X y: a\r\nContent-Length: 0\r\n\r\n`,
  "a header without a name": `${ok}: a\r\nContent-Length: 0\r\n\r\n`,
  "a header without a colon": `${ok}abc\r\nContent-Length: 0\r\n\r\n`,
  "a folded header": `${ok}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`,
  "headers named like properties": `${ok}__proto__: a\r\nconstructor: b\r\nContent-Length: 0\r\n\r\n`,
  "a connection header that names all": `${ok}Connection: content-length, x, \xff\r\nX: y\r\nContent-Length: 2\r\n\r\nhi`,
  "two lengths": `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!`,
  "a negative length": `${ok}Content-Length: -2\r\n\r\nhi`,
  "a huge length": `${ok}Content-Length: 99999999999999999999999\r\n\r\nhi`,
  "a length and chunks": `${ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  "a transfer encoding of its own": `${ok}Transfer-Encoding: x\r\n\r\nhi`,
  "chunks of no length": `${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n`,
  "chunks of huge length": `${ok}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhi`,
  "trailers with control bytes": `${ok}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: \x01\r\n\r\n`,
  "trailers that are sound": `${ok}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n`,
  "a body where none may be": "HTTP/1.1 204 a\r\nContent-Length: 2\r\n\r\nhi",
  "a body of not modified": "HTTP/1.1 304 a\r\nContent-Length: 2\r\n\r\nhi",
  "less than its length": `${ok}Content-Length: 20\r\n\r\nhi`,
  "more than its length": `${ok}Content-Length: 2\r\n\r\nhi and more`,
  "two answers": `${ok}Content-Length: 2\r\n\r\nhi${ok}Content-Length: 2\r\n\r\nho`,
  "a head without end": `${ok}X: a\r\n`,
  "a head of 17 KiB": `${ok}X: ${"a".repeat(17_000)}\r\n\r\n`,
  "a length with a sign": `${ok}Content-Length: +2\r\n\r\nhi`,
  "a length in hexadecimal": `${ok}Content-Length: 0x2\r\n\r\nhi`,
  "a list of lengths": `${ok}Content-Length: 2, 2\r\n\r\nhi`,
  "a length with a control byte": `${ok}Content-Length: 2\x0b\r\n\r\nhi`,
  "an empty length": `${ok}Content-Length: \r\n\r\nhi`,
  "a length beyond what a number holds": `${ok}Content-Length: 9007199254740993\r\n\r\nhi`,
  "a head that ends in line feeds": `HTTP/1.1 200 OK\nContent-Length: 2\n\nhi${ok}X: y\r\n\r\n`,
  "a head whose last line ends in a line feed": `${ok}Content-Length: 2\n\r\nhi`,
  "a head that ends twice": `${ok}Content-Length: 50\n\n${ok}Content-Length: 2\r\n\r\nhi`,
  "a head that ends in carriage returns": `HTTP/1.1 200 OK\rContent-Length: 2\r\rhi\r\n\r\n`,
  "empty lines before the head": `\r\n\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`,
  "chunks after other encodings": `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  "chunked twice": `${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  "a tab before chunked": `${ok}Transfer-Encoding:\tchunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  "chunks with extensions": `${ok}Transfer-Encoding: chunked\r\n\r\n2;a="\r\n\r\n"\r\nhi\r\n0\r\n\r\n`,
  "an answer behind chunks": `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n${ok}X: y\r\n\r\n`,
  "an end only by closing": `${ok}X: y\r\n\r\nhi`,
  "an answer within an answer without a length": `${ok}X: y\r\n\r\n${ok}Content-Length: 2\r\n\r\nho`,
  "early hints and then a length": `HTTP/1.1 103 E\r\nLink: <a>\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`,
  "early hints with a length of their own": `HTTP/1.1 103 E\r\nContent-Length: 9\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`,
  "a length for HEAD that is not kept": `${ok}Content-Length: 900\r\n\r\nhi`,
  "another protocol": "SSH-2.0-OpenSSH_9\r\n",
  "another version": "HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\nhi",
  "a version of one digit": "HTTP/1 200 OK\r\n\r\nhi",
  nothing: "",
  "bytes that are no text": "\x00\x01\x02\xff\xfe\xfd",
  ...sound,
};

describe("egress proxy", () => {
  test.for(Object.entries(hostile))(
    "the egress proxy answers, closes both sides and goes on after an allowed site sent %s",
    async ([, answer]) => {
      const { ask, openOutside } = await worldOf(answer);
      for (const method of ["GET", "HEAD", "POST"]) {
        const back = await ask(method);
        // What is wrong behind the head breaks the answer off.
        if (back === "") continue;
        expect(back, method).toMatch(/^HTTP\/1\.1 [1-9]\d\d [\x20-\x7e]*\r\n/);
        const [head = ""] = back.split("\r\n\r\n", 1);
        expect(head).not.toMatch(controls);
        // One answer, whatever the site puts behind or within its own.
        expect(head.match(/^HTTP\//gm)).toHaveLength(1);
        const body = back.slice(head.length + 4);
        const [, length] = /^content-length: (\d+)$/im.exec(head) ?? [];
        if (length !== undefined) expect(body.length, method).toBeLessThanOrEqual(Number(length));
        if (method === "HEAD") expect(body).toBe("");
      }
      await expect.poll(openOutside).toBe(0);
    },
  );
});

test.for([
  ["a control byte in the reason", /^HTTP\/1\.1 200 OK\r\n[\s\S]*hi$/],
  ["high bytes in the reason", /^HTTP\/1\.1 200 OK\r\n[\s\S]*hi$/],
  ["status 999", /^HTTP\/1\.1 999 \r\n[\s\S]*hi$/],
  ["status 000", /^HTTP\/1\.1 502 [\s\S]*its status is 0/],
  ["status 099", /^HTTP\/1\.1 502 [\s\S]*its status is 99/],
  ["an upgrade without a request for one", /^HTTP\/1\.1 502 /],
  ["a header with a control byte", /^HTTP\/1\.1 502 /],
] as const)("the egress proxy gives words of its own for a site's %s", async ([name, wanted]) => {
  const { ask } = await worldOf(hostile[name] ?? "");
  expect(await ask()).toMatch(wanted);
});

test("the egress proxy answers at once when a site resets the connection, before its answer or within it", async () => {
  const answers = ["", `${ok}Content-Le`, `${ok}Content-Length: 900\r\n\r\nhi`, `${ok}X: y\r\n\r\nhi`];
  for (const answer of answers)
    for (const when of ["accepted", "asked"] as const) {
      const site = await listen((socket) => {
        const reset = () => socket.write(answer, () => socket.resetAndDestroy());
        if (when === "accepted") reset();
        else socket.once("data", reset);
      });
      const gate = new EgressGate({ rules: [`127.0.0.1:${site}`], ceilings, report: () => {} });
      const proxy = new EgressProxy(gate);
      const port = await listen((socket) => proxy.accept(socket));
      for (let round = 0; round < 20; round++) {
        const socket = connect(port, "127.0.0.1").on("error", () => {});
        sockets.add(socket);
        socket.write(`POST http://127.0.0.1:${site}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc`);
        let back = "";
        socket.on("data", (chunk: Buffer) => {
          back += chunk.toString("latin1");
        });
        await once(socket, "close");
        // Only what has a sound head has begun.
        expect(back, `${when} ${JSON.stringify(answer)}`).toMatch(/^$|^HTTP\/1\.1 (?:502|200) /);
      }
    }
});

test("the egress proxy passes the answer to HEAD on, which has a length and no body", async () => {
  const { ask } = await worldOf("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n");
  expect(await ask("HEAD")).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 2\r\n/);
});

test.for([
  ["a length", (body: string) => `${ok}Content-Length: ${body.length}\r\n\r\n${body}`],
  [
    "a length, after early hints",
    (body: string) =>
      `HTTP/1.1 103 E\r\n\r\nHTTP/1.1 100 C\r\n\r\n${ok}Content-Length: ${body.length}\r\n\r\n${body}`,
  ],
  ["no length", (body: string) => `${ok}X: y\r\n\r\n${body}`],
  [
    "chunks",
    (body: string) =>
      `${ok}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  ],
] as const)(
  "the egress proxy passes on every byte of an answer with %s, however it is cut",
  async ([, answerOf]) => {
    const body = "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n0\r\n\r\n!".repeat(3);
    const whole = answerOf(body);
    for (let cut = 1; cut < whole.length; cut += 3) {
      const { ask } = await worldOf(whole, cut);
      const back = await ask();
      const at = back.indexOf("\r\n\r\n") + 4;
      const isChunked = /^transfer-encoding: chunked/im.test(back.slice(0, at));
      expect(isChunked ? unchunked(back.slice(at)) : back.slice(at), `cut at ${cut}`).toBe(body);
    }
  },
);

/** Sound chunks only: the proxy made them. */
function unchunked(text: string): string {
  const [, digits = "", rest = ""] = /^([0-9a-f]+)\r\n([\s\S]*)$/i.exec(text) ?? [];
  const size = Number.parseInt(digits, 16);
  return size > 0 ? rest.slice(0, size) + unchunked(rest.slice(size + 2)) : "";
}

describe("download", () => {
  test.for(Object.entries(hostile))(
    "a download ends, with a result or a refusal, after the site sent %s",
    async ([, answer]) => {
      const { gate, url, openOutside } = await worldOf(answer);
      const fetched = async () => {
        const { chunks } = await download(gate, url, AbortSignal.timeout(20_000));
        for await (const _ of chunks);
      };
      await fetched().catch((error: Error) => expect(error.name).toBe("EgressDenied"));
      await expect.poll(openOutside).toBe(0);
    },
  );
});
