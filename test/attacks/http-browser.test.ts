import { describe, expect } from "vitest";
import { test } from "../support/gateway.ts";
import { raw } from "../support/raw-http.ts";

const body = '{"tenant":"acme","request":{"kind":"exec","command":"true"}}';

function post(host: string, more: string): string {
  return `POST /v1/jobs HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
}

describe("a page in a browser on the same machine, and a gateway without keys", () => {
  test("a gateway without keys does not answer a foreign host name that points at 127.0.0.1", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    for (const host of [
      "evil.example",
      `evil.example:${gateway.port}`,
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "[::2]",
      "2130706433",
    ]) {
      expect((await raw(gateway.port, post(host, ""))).status, host).toBe(421);
    }
    for (const host of ["localhost", `127.0.0.1:${gateway.port}`, "[::1]", "127.0.0.2"]) {
      expect((await raw(gateway.port, post(host, ""))).status, host).toBe(202);
    }
  });

  test("a gateway without keys does not answer a page of another origin, by Origin or Sec-Fetch-Site", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    const host = `localhost:${gateway.port}`;
    const foreign = [
      "Origin: https://evil.example\r\n",
      "Origin: null\r\n",
      `Origin: http://localhost:${gateway.port + 1}\r\n`,
      `Origin: http://127.0.0.1:${gateway.port}\r\n`,
      "Sec-Fetch-Site: cross-site\r\n",
      "Sec-Fetch-Site: same-site\r\n",
    ];
    for (const header of foreign) {
      expect((await raw(gateway.port, post(host, header))).status, header).toBe(403);
    }
    expect((await raw(gateway.port, post(host, `Origin: http://${host}\r\n`))).status).toBe(202);
  });

  test("a request that came through a proxy is not the local user's, and the answer asks for a key", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    const host = `127.0.0.1:${gateway.port}`;
    const signs = [
      "Forwarded: for=203.0.113.9\r\n",
      "X-Forwarded-For: 203.0.113.9\r\n",
      "X-Forwarded-Proto: https\r\n",
      "x-forwarded-anything:\r\n",
      "X-Real-IP: 203.0.113.9\r\n",
      "Via: 1.1 proxy\r\n",
    ];
    for (const header of signs) {
      const answer = await raw(gateway.port, post(host, header));
      expect(answer.status, header).toBe(401);
      expect(answer.text).toContain("berth key create NAME --admin");
      const board = `GET /board/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${header}\r\n`;
      expect((await raw(gateway.port, board)).status, `the board, ${header}`).toBe(401);
    }
    const old = post(host, "").replace("HTTP/1.1", "HTTP/1.0");
    expect((await raw(gateway.port, old)).status, "HTTP/1.0, as nginx has it").toBe(401);
    expect((await raw(gateway.port, post(host, ""))).status).toBe(202);
  });

  test("a gateway reads no content types that a form can send, and gives no page CORS permission", async ({
    gateways,
  }) => {
    const gateway = await gateways.start({ BERTH_ADMIN_KEY: "" });
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const answer = await gateway.call("POST", "/v1/jobs", {
        key: undefined,
        body,
        headers: { "content-type": type },
      });
      expect(answer.status, type).toBe(415);
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("the page of the API runs no script and loads nothing from elsewhere", async ({ gateways }) => {
    const gateway = await gateways.start();
    const page = await gateway.call("GET", "/docs", { key: undefined });
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.body).not.toMatch(/<script|https?:\/\/|src=/);
    expect(page.body).toContain("/v1/jobs/{id}/events");
  });
});
