export type CallName =
  | "ping"
  | "info"
  | "list"
  | "create"
  | "inspect"
  | "start"
  | "remove"
  | "image"
  | "pull";

export interface Known<C extends string> {
  readonly call: C;
  /** The container or image that the call is about. */
  readonly id: string;
}

interface Route<C extends string> {
  readonly method: string;
  readonly pattern: RegExp;
  readonly call: C;
}

/** Names and ids have no slash and no percent sign in them, so that a path means to the engine what it means here. */
const id = "([A-Za-z0-9][A-Za-z0-9_.-]*)";
const image = "([A-Za-z0-9][A-Za-z0-9_.:@/-]*)";

/**
 * The calls to the engine that a worker makes, and no others.
 *
 *   info                  what the engine can do           driver.ts, fresh-container.ts
 *   list                  the fleet's containers           containers.ts
 *   create … remove       one container's life             containers.ts
 *   image, pull           the sandboxes' image             image.ts
 */
const calls = [
  route("GET", "/_ping", "ping"),
  route("GET", "/info", "info"),
  route("GET", "/containers/json", "list"),
  route("POST", "/containers/create", "create"),
  route("GET", `/containers/${id}/json`, "inspect"),
  route("POST", `/containers/${id}/start`, "start"),
  route("DELETE", `/containers/${id}`, "remove"),
  route("GET", `/images/${image}/json`, "image"),
  route("POST", "/images/create", "pull"),
] as const;

/** The connection becomes a stream of bytes: frames to and from init. */
const streams = [route("POST", `/containers/${id}/attach`, "attach")] as const;

/** `path` is without the query. */
export function knownCall(method: string, path: string): Known<CallName> | undefined {
  return find(calls, method, path);
}

export function knownStream(method: string, path: string): Known<"attach"> | undefined {
  return find(streams, method, path);
}

function route<C extends string>(method: string, path: string, call: C): Route<C> {
  return { method, pattern: new RegExp(`^(?:/v1\\.\\d+)?${path}$`), call };
}

function find<C extends string>(
  routes: readonly Route<C>[],
  method: string,
  path: string,
): Known<C> | undefined {
  if (path.includes("..") || path.includes("//")) return undefined;
  for (const { method: wanted, pattern, call } of routes) {
    const match = method === wanted ? pattern.exec(path) : null;
    if (match) return { call, id: match[1] ?? "" };
  }
  return undefined;
}
