import type { IncomingMessage } from "node:http";
import { isFault } from "@berth/protocol";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { readBody } from "../http/body.ts";
import { failureOf } from "../http/failure.ts";
import { refuseCrossOrigin, refuseForeignCallers } from "../http/header-guard.ts";
import { Problem, problemBody } from "../http/problem.ts";
import { smallPagePolicy } from "../http/small-page.ts";
import { noted } from "../keys/audit.ts";
import { TokenBuckets } from "../keys/token-bucket.ts";
import type { Parts } from "../parts.ts";
import { approvalsPage } from "./approvals-page.ts";
import { BoardQueues } from "./board-queues.ts";
import { BoardSessions } from "./board-sessions.ts";
import { bullBoard } from "./bull-board.ts";
import { Changes } from "./changes.ts";
import { boardPage, boardPolicy, boardProblem, findPage, loginPage } from "./pages.ts";

const loginsPerSecond = 2;
const loginBytes = 2_000;
/** Routes that need no login. By route, not by URL: a URL can be spelled in many ways. */
const openRoutes = new Set(["/board/login", "/board/static/*"]);

/**
 * Bull Board at /board, for admins. Login exchanges an admin key for a cookie that browsers send only from the board's own pages.
 * Every request that is not a GET must also have this gateway's Origin. Without keys, programs of this machine need no login.
 */
export class Board {
  readonly #parts: Parts;
  readonly #sessions: BoardSessions;
  readonly #queues: BoardQueues;
  readonly #changes: Changes;
  readonly #isReadOnly: boolean;
  readonly #bull = bullBoard();
  readonly #logins = new TokenBuckets();

  constructor(parts: Parts) {
    const { redis, berth, config, audit } = parts;
    const isReadOnly = config.board === "read-only";
    this.#parts = parts;
    this.#isReadOnly = isReadOnly;
    this.#sessions = new BoardSessions(redis, {
      secure: config.boardCookie === "secure",
      adminKey: config.adminKey,
    });
    this.#queues = new BoardQueues(redis, berth, { isReadOnly });
    this.#changes = new Changes({ berth, audit, queues: this.#queues, isReadOnly });
  }

  async mount(app: FastifyInstance): Promise<void> {
    await app.register(this.#plugin, { prefix: "/board" });
  }

  close(): void {
    this.#queues.close();
  }

  readonly #plugin: FastifyPluginAsync = async (board) => {
    const maxMs = this.#parts.config.maxBodyMs;
    const readForm = async (request: FastifyRequest, payload: IncomingMessage) => {
      const bytes = await readBody(payload, { maxBytes: loginBytes, maxMs, onBytes: request.bodyHold.take });
      return Object.fromEntries(new URLSearchParams(bytes.toString()));
    };
    board.addContentTypeParser("application/x-www-form-urlencoded", readForm);
    board.addHook("onRequest", (request, reply) => this.#guard(request, reply));
    board.addHook("preHandler", (request, reply) => this.#change(request, reply));
    board.addHook("onSend", async (request, _, payload) =>
      isBullPage(request) && typeof payload === "string" ? boardPage(payload) : payload,
    );
    board.get("/login", (_, reply) => html(reply, loginPage()));
    board.post("/login", (request, reply) => this.#logIn(request, reply));
    board.post("/logout", (request, reply) => this.#logOut(request, reply));
    board.get("/find", (request, reply) => this.#find(request, reply));
    board.get("/approvals", async (_, reply) => html(reply, await this.#approvals()));
    board.post("/approvals", (request, reply) => this.#decide(request, reply));
    await board.register(this.#bull.plugin);
  };

  async #approvals(problem?: string): Promise<string> {
    const approvals = await this.#parts.berth.approvals.list();
    return approvalsPage({ approvals, isReadOnly: this.#isReadOnly, problem });
  }

  async #decide(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { berth, audit } = this.#parts;
    const {
      job = "",
      digest = "",
      decision,
      reason = "",
    } = (request.body ?? {}) as Readonly<Record<string, string>>;
    if (this.#isReadOnly) return html(reply.code(405), await this.#approvals("This board is read-only."));
    if (decision !== "approve" && decision !== "refuse")
      return html(reply.code(400), await this.#approvals("Approve or refuse it."));
    try {
      await berth.approvals[decision]({ jobId: job, digest }, { by: `key ${request.principal.id}`, reason });
    } catch (error) {
      if (!isFault(error, "not-waiting-for-approval")) throw error;
      return html(reply.code(409), await this.#approvals(error.message));
    }
    await audit.note(decision === "approve" ? "job.approved" : "job.refused", noted(request, job));
    return reply.redirect("/board/approvals", 303);
  }

  async #guard(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { method, headers, routeOptions } = request;
    // Not `no-referrer`: a browser then sends a form's Origin as null, so the board's own pages would be refused too.
    void reply.header("content-security-policy", boardPolicy).header("referrer-policy", "same-origin");
    if (method !== "GET") refuseCrossOrigin(headers.host ?? "", headers.origin, headers["sec-fetch-site"]);
    if (openRoutes.has(routeOptions.url ?? "")) return undefined;
    const actor = await this.#actor(request);
    if (actor === undefined) return askToLogIn(request, reply);
    request.principal = { ...request.principal, id: actor, role: "admin" };
    if (isBullApi(request) || isBullPage(request)) {
      const adapters = await this.#queues.adapters();
      this.#bull.show(adapters, this.#queues.summary);
    }
    return undefined;
  }

  /** The key of the login, while it is valid. */
  async #actor(request: FastifyRequest): Promise<string | undefined> {
    const { authenticator } = this.#parts;
    if (await authenticator.isOpen()) {
      refuseForeignCallers(request);
      return "local";
    }
    const actor = await this.#sessions.actor(request.headers.cookie);
    if (actor === undefined) return undefined;
    const good = await authenticator.stillGood({ id: actor, role: "admin", bodyBytes: 0 });
    return good ? actor : undefined;
  }

  /** No changing request reaches Bull Board itself. */
  async #change(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    if (request.method === "GET" || !isBullApi(request)) return undefined;
    try {
      return await this.#changes.answer(request, reply);
    } catch (error) {
      const failure = failureOf(error, request.principal);
      if (failure.ours) throw error;
      return reply.code(failure.status).send(boardProblem(failure, request.id));
    }
  }

  async #logIn(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { authenticator, audit } = this.#parts;
    if (this.#logins.draw(request.callerAddress, loginsPerSecond) > 0) {
      return html(reply.code(429), loginPage("Too many tries. Wait a moment."));
    }
    const { key = "" } = (request.body ?? {}) as { key?: string };
    try {
      const { id } = await authenticator.admin(key);
      await audit.note("board.login", { actor: id, target: "/board", from: request.callerAddress });
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
    const { tenant: name } = request.query as { tenant?: unknown };
    await this.#queues.adapters();
    const shown = { shown: this.#queues.sandboxes, summary: this.#queues.summary };
    if (typeof name !== "string" || name === "") return html(reply, findPage(shown));
    const queue = await this.#queues.find(name);
    if (queue !== undefined) return reply.redirect(`/board/queue/${encodeURIComponent(queue)}`, 303);
    const found = await this.#parts.berth.tenantsLike(name);
    return html(reply.code(found.length === 0 ? 404 : 200), findPage({ ...shown, name, found }));
  }
}

function isBullApi({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.url?.startsWith("/board/api/") ?? false;
}

/** Whether the route is one of those that Bull Board answers with its page. */
function isBullPage({ routeOptions }: FastifyRequest): boolean {
  const { url = "" } = routeOptions;
  return /^\/board\/?(?:$|queue\/|job-schedulers$|metrics-history$)/.test(url);
}

/** A browser is redirected to the form, a program gets the error. */
function askToLogIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const isPage = request.method === "GET" && !request.url.startsWith("/board/api/");
  if (isPage) return reply.redirect("/board/login", 303);
  const failure = failureOf(new Problem("unauthorized", "log in at /board/login"));
  return reply.code(401).send(problemBody(failure, request.id));
}

function html(reply: FastifyReply, page: string): FastifyReply {
  return reply.type("text/html; charset=utf-8").header("content-security-policy", smallPagePolicy).send(page);
}
