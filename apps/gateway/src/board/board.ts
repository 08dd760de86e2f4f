import type { IncomingMessage } from "node:http";
import { sharedOwner, type TenantId, tenantId } from "@berth/protocol";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { readBody } from "../http/body.ts";
import { failureOf } from "../http/failure.ts";
import { refuseForeign, refuseStrangers } from "../http/header-guard.ts";
import { Problem, problemBody } from "../http/problem.ts";
import { noted } from "../keys/audit.ts";
import { TokenBuckets } from "../keys/token-bucket.ts";
import type { Parts } from "../parts.ts";
import { BoardSessions } from "./board-sessions.ts";
import { bullBoard } from "./bull-board.ts";
import { boardPolicy, findPage, loginPage, pagePolicy } from "./pages.ts";
import { Shelf } from "./shelf.ts";

const loginsPerSecond = 2;
const loginBytes = 2_000;
/** The form itself, and the dashboard's published scripts. By route, not by address: an address can be spelled in many ways. */
const unguarded = new Set(["/board/login", "/board/static/*"]);

/**
 * Bull Board at /board, for admins. A key is exchanged for a cookie that no other site's page can bring along; what changes
 * something must also come from a page of this very origin. Without keys it is open to this machine, as all else is.
 */
export class Board {
  readonly #parts: Parts;
  readonly #sessions: BoardSessions;
  readonly #shelf: Shelf;
  readonly #bull = bullBoard();
  readonly #logins = new TokenBuckets();

  constructor(parts: Parts) {
    const { redis, berth, config } = parts;
    this.#parts = parts;
    this.#sessions = new BoardSessions(redis, config.BERTH_BOARD_COOKIE === "secure");
    this.#shelf = new Shelf(redis, berth, { readOnly: config.BERTH_BOARD === "read-only" });
  }

  async mount(app: FastifyInstance): Promise<void> {
    await app.register(this.#plugin, { prefix: "/board" });
  }

  close(): void {
    this.#shelf.close();
  }

  readonly #plugin: FastifyPluginAsync = async (board) => {
    const maxMs = this.#parts.config.BERTH_GATEWAY_BODY_MS;
    const readForm = async (request: FastifyRequest, payload: IncomingMessage) => {
      const bytes = await readBody(payload, { maxBytes: loginBytes, maxMs, onBytes: request.bodyHold.take });
      return Object.fromEntries(new URLSearchParams(bytes.toString()));
    };
    board.addContentTypeParser("application/x-www-form-urlencoded", readForm);
    board.addHook("onRequest", (request, reply) => this.#guard(request, reply));
    board.addHook("onResponse", (request, reply) => this.#noteChange(request, reply));
    board.get("/login", (_, reply) => html(reply, loginPage()));
    board.post("/login", (request, reply) => this.#logIn(request, reply));
    board.post("/logout", (request, reply) => this.#logOut(request, reply));
    board.get("/find", (request, reply) => this.#find(request, reply));
    await board.register(this.#bull.plugin);
  };

  async #guard(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { method, headers, routeOptions } = request;
    // Not `no-referrer`: a browser then sends a form's Origin as null, and we could not tell our own page from another's.
    void reply.header("content-security-policy", boardPolicy).header("referrer-policy", "same-origin");
    if (method !== "GET") refuseForeign(headers.host ?? "", headers.origin, headers["sec-fetch-site"]);
    if (unguarded.has(routeOptions.url ?? "")) return undefined;
    const actor = await this.#actor(request);
    if (actor === undefined) return askToLogIn(request, reply);
    request.principal = { ...request.principal, id: actor, role: "admin" };
    if (routeOptions.url?.startsWith("/board/api/")) this.#bull.show(await this.#shelf.adapters());
    return undefined;
  }

  /** The key somebody logged in with, as long as it is good. */
  async #actor(request: FastifyRequest): Promise<string | undefined> {
    const { authenticator } = this.#parts;
    if (await authenticator.isOpen()) {
      refuseStrangers(request);
      return "local";
    }
    const actor = await this.#sessions.actor(request.headers.cookie);
    if (actor === undefined) return undefined;
    const good = await authenticator.stillGood({ id: actor, role: "admin", bodyBytes: 0 });
    return good ? actor : undefined;
  }

  async #noteChange(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (request.method === "GET" || reply.statusCode >= 300) return;
    await this.#parts.audit.note("board.changed", noted(request, request.url.slice(0, 200)));
  }

  async #logIn(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { authenticator, audit } = this.#parts;
    if (this.#logins.draw(request.ip, loginsPerSecond) > 0) {
      return html(reply.code(429), loginPage("Too many tries. Wait a moment."));
    }
    const { key = "" } = (request.body ?? {}) as { key?: string };
    try {
      const { id } = await authenticator.admin(key);
      await audit.note("board.login", { actor: id, target: "/board", from: request.ip });
      return reply.header("set-cookie", await this.#sessions.begin(id)).redirect("/board/", 303);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return html(reply.code(403), loginPage("That is not an admin key."));
    }
  }

  async #logOut(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const cookie = await this.#sessions.end(request.headers.cookie);
    return reply.header("set-cookie", cookie).redirect("/board/login", 303);
  }

  async #find(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { tenant } = request.query as { tenant?: string };
    if (tenant === undefined) return html(reply, findPage());
    const isName = tenant === sharedOwner || tenantId.safeParse(tenant).success;
    const known = isName ? await this.#shelf.find(tenant as TenantId) : 0;
    if (known > 0) return reply.redirect("/board/", 303);
    return html(reply.code(404), findPage("Nothing is known of that tenant."));
  }
}

/** People are led to the form, programs are told. */
function askToLogIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isPage = request.method === "GET" && !request.url.startsWith("/board/api/");
  if (isPage) return reply.redirect("/board/login", 303);
  const failure = failureOf(new Problem("unauthorized", "log in at /board/login"));
  return reply.code(401).send(problemBody(failure, request.id));
}

function html(reply: FastifyReply, page: string): FastifyReply {
  return reply.type("text/html; charset=utf-8").header("content-security-policy", pagePolicy).send(page);
}
