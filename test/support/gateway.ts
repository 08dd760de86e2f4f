import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { type AnyRoute, describedRoutes } from "@berth/gateway";
import { expect } from "vitest";
import { test as withFleet } from "./fleet.ts";
import { startProgram } from "./program.ts";
import { test as withRedis } from "./redis.ts";

export const adminKey = "an-admin-key-for-tests-only-0123456789";
const routes = describedRoutes();

export interface CallOptions {
  readonly key?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests say what they expect of it
  readonly body: any;
}

/** A gateway process of one test. Fails on an answer that the route does not declare. */
export class TestGateway {
  readonly process: ChildProcess;
  #log = "";
  #errors = "";

  constructor(env: Record<string, string>) {
    this.process = startProgram("apps/gateway/src/main.ts", {
      env: { PATH: process.env.PATH ?? "", BERTH_GATEWAY_PORT: "0", ...env },
    });
    this.process.stdout?.on("data", (chunk: Buffer) => {
      this.#log += chunk;
    });
    this.process.stderr?.on("data", (chunk: Buffer) => {
      this.#errors += chunk;
    });
  }

  get log(): string {
    return this.#log;
  }

  get errors(): string {
    return this.#errors;
  }

  get url(): string {
    const line = this.#log.split("\n").find((one) => one.includes("gateway.started")) ?? "{}";
    return JSON.parse(line).address;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async started(): Promise<this> {
    const state = () =>
      this.process.exitCode === null ? this.#log : `gateway.started never: ${this.#errors}`;
    await expect.poll(state, { timeout: 60_000 }).toContain("gateway.started");
    if (this.process.exitCode !== null) expect.fail(`the gateway ended: ${this.#errors}`);
    return this;
  }

  /** Its exit code, or the signal that ended it. */
  async ended(): Promise<number | string> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "exit");
    return this.process.exitCode ?? this.process.signalCode ?? "gone";
  }

  async stop(): Promise<number | string> {
    this.process.kill("SIGTERM");
    return this.ended();
  }

  /** With the admin key unless another is given; `key: undefined` sends none. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<Answered> {
    const response = await this.fetch(method, path, options);
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").includes("json");
    const body = isJson && text !== "" ? JSON.parse(text) : text;
    expectDeclared(method, path, response.status, body);
    return { status: response.status, headers: response.headers, body };
  }

  fetch(
    method: string,
    path: string,
    options: CallOptions & { signal?: AbortSignal } = {},
  ): Promise<Response> {
    const key = "key" in options ? options.key : adminKey;
    const isText = typeof options.body === "string" || options.body instanceof Uint8Array;
    return fetch(`${this.url}${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers,
      },
      ...(options.body === undefined
        ? {}
        : { body: isText ? (options.body as string) : JSON.stringify(options.body) }),
      ...(options.signal ? { signal: options.signal } : {}),
    });
  }
}

/** An answer that no route declares, or that does not fit its schema, breaks the promise of the OpenAPI document. */
function expectDeclared(method: string, path: string, status: number, body: unknown): void {
  if (status >= 400 && (body as { code?: unknown }).code !== undefined) {
    expect(body).toMatchObject({
      status,
      type: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
    });
    return;
  }
  const route = routeOf(method, path);
  const answer = route?.answers[status];
  if (!answer) expect.fail(`${method} ${path} answered ${status}, which its route does not declare`);
  const parsed = answer.schema?.safeParse(body);
  if (parsed && !parsed.success)
    expect.fail(`${method} ${path}: ${parsed.error.message}\n${JSON.stringify(body)}`);
}

function routeOf(method: string, path: string): AnyRoute | undefined {
  const [bare = ""] = path.split("?", 1);
  const fits = (route: AnyRoute) =>
    new RegExp(`^${route.path.replaceAll(/:[A-Za-z]+/g, "[^/]+")}$`).test(bare) && route.method === method;
  return routes.find((route) => route.path === bare && route.method === method) ?? routes.find(fits);
}

export class TestGateways {
  readonly #redisUrl: string;
  readonly #made: TestGateway[] = [];

  constructor(redisUrl: string) {
    this.#redisUrl = redisUrl;
  }

  /** Starts with an admin key, unless BERTH_ADMIN_KEY is set to an empty text. */
  async start(env: Record<string, string> = {}): Promise<TestGateway> {
    return this.spawn(env).started();
  }

  spawn(env: Record<string, string> = {}): TestGateway {
    const gateway = new TestGateway({ REDIS_URL: this.#redisUrl, BERTH_ADMIN_KEY: adminKey, ...env });
    this.#made.push(gateway);
    return gateway;
  }

  async close(): Promise<void> {
    await Promise.all(this.#made.map((gateway) => gateway.stop()));
    const broken = this.#made.flatMap(({ log }) =>
      log.split("\n").filter((line) => line.includes('"code":"internal"')),
    );
    expect(broken, "answers of the gateway that break its own document").toEqual([]);
    const printed = this.#made.flatMap(({ errors }) => (errors.includes("[ioredis]") ? [errors] : []));
    expect(printed, "what a library printed").toEqual([]);
  }
}

/** A gateway on a Redis without workers. */
export const test = withRedis.extend<{ gateways: TestGateways }>({
  gateways: async ({ redis }, use) => {
    const gateways = new TestGateways(redis.url);
    try {
      await use(gateways);
    } finally {
      await gateways.close();
    }
  },
});

/** A gateway in front of a fleet. */
export const fleetTest = withFleet.extend<{ gateways: TestGateways }>({
  gateways: async ({ fleet }, use) => {
    const gateways = new TestGateways(fleet.redis.url);
    try {
      await use(gateways);
    } finally {
      await gateways.close();
    }
  },
});
