import { complaints } from "./container-rules.mjs";
import { mountComplaints } from "./mount-check.mjs";
import { Refusal } from "./refusal.mjs";
import { withTag } from "./settings.mjs";

const FLEET_LABEL = "berth.fleet";
const WORKER_LABEL = "berth.role";
/** Of the engine's description of itself; the rest is nobody's business. */
const INFO_FIELDS = ["Name", "ServerVersion", "SecurityOptions", "CgroupVersion", "Runtimes"];

/**
 * What the engine is asked in the place of what a worker asked: the same call, made anew from the parts that are understood,
 * and only about containers of the fleet.
 *
 * @typedef {{ method: string, target: string, body?: unknown } | { value: unknown }} Order
 */
export class Orders {
  #engine;
  #rules;

  /**
   * @param {import('./engine.mjs').Engine} engine
   * @param {import('./container-rules.mjs').Rules} rules
   */
  constructor(engine, rules) {
    this.#engine = engine;
    this.#rules = rules;
  }

  /**
   * @param {import('./calls.mjs').Known} known
   * @param {URLSearchParams} query
   * @param {string} body
   * @returns {Promise<Order>}
   */
  async forCall({ call, id = "" }, query, body) {
    switch (call) {
      case "ping":
        return { method: "GET", target: "/_ping" };
      case "info":
        return { value: picked(await this.#engine.value("/info"), INFO_FIELDS) };
      case "list":
        return { method: "GET", target: `/containers/json?all=1&filters=${this.#fleetFilter()}` };
      case "create":
        return this.#create(query, body);
      case "inspect":
        return { value: await this.#inspect(id) };
      case "start":
        return { method: "POST", target: `/containers/${await this.#startable(id)}/start` };
      case "remove":
        return { method: "DELETE", target: `/containers/${await this.ours(id)}?force=1&v=1` };
      case "image":
        return { method: "GET", target: `/images/${this.#listed(id)}/json` };
      case "pull":
        return this.#pull(query);
      default:
        throw new Error(`no order for ${call}`);
    }
  }

  /**
   * @param {import('./calls.mjs').Known} known
   * @returns {Promise<{ method: string, target: string }>}
   */
  async forStream({ id = "" }) {
    const target = `/containers/${await this.ours(id)}/attach?stream=1&stdin=1&stdout=1&stderr=1`;
    return { method: "POST", target };
  }

  /** The full id of a container of the fleet, which, unlike a name, is never another's later. */
  async ours(id) {
    return (await this.#facts(id)).Id;
  }

  async #inspect(id) {
    const facts = await this.#engine.value(`/containers/${id}/json`);
    // A worker asks who it is itself. Its own environment, and other workers', stays out of the answer.
    if (facts?.Config?.Labels?.[WORKER_LABEL] === "worker")
      return { Id: facts.Id, Config: { Labels: facts.Config.Labels } };
    return this.#checked(facts, id);
  }

  async #facts(id) {
    return this.#checked(await this.#engine.value(`/containers/${id}/json`), id);
  }

  /** Another's container looks as if it were not there. */
  #checked(facts, id) {
    if (facts?.Config?.Labels?.[FLEET_LABEL] !== this.#rules.fleet)
      throw new Refusal(404, `no such container in this fleet: ${id}`);
    return facts;
  }

  /** Its full id, if what it mounts is still what it was made with. The engine mounts when it starts a container. */
  async #startable(id) {
    const { Id, Config, HostConfig } = await this.#facts(id);
    const found = await mountComplaints(HostConfig?.Mounts ?? [], Config.User ?? "", this.#rules);
    if (found.length > 0) throw new Refusal(403, found.join("; "));
    return Id;
  }

  async #create(query, body) {
    const name = query.get("name") ?? "";
    const { name: _, ...container } = parsed(body);
    const found = complaints(container, this.#rules);
    if (!name.startsWith(`berth-${this.#rules.fleet}-`) || !/^[A-Za-z0-9_.-]+$/.test(name))
      found.push(`${name || "no name"} is not a name of this fleet's`);
    if (found.length === 0)
      found.push(...(await mountComplaints(container.HostConfig.Mounts, container.User, this.#rules)));
    if (found.length > 0) throw new Refusal(403, found.join("; "));
    return { method: "POST", target: `/containers/create?name=${name}`, body: container };
  }

  #listed(image) {
    if (this.#rules.images.includes(withTag(image))) return image;
    throw new Refusal(403, `${image} is not an image of this fleet's: BERTH_PROXY_IMAGES lists them`);
  }

  /** From a registry only: `fromSrc` would make an image of any address or of the body. */
  #pull(query) {
    const image = query.get("fromImage");
    const tag = query.get("tag");
    if (!image || query.has("fromSrc")) throw new Refusal(403, "only a pull by name is for workers");
    this.#listed(tag ? `${image}${tag.includes(":") ? "@" : ":"}${tag}` : image);
    const asked = new URLSearchParams({ fromImage: image, ...(tag ? { tag } : {}) });
    return { method: "POST", target: `/images/create?${asked}` };
  }

  #fleetFilter() {
    return encodeURIComponent(JSON.stringify({ label: [`${FLEET_LABEL}=${this.#rules.fleet}`] }));
  }
}

function picked(value, fields) {
  return Object.fromEntries(
    fields.filter((name) => value?.[name] !== undefined).map((name) => [name, value[name]]),
  );
}

function parsed(body) {
  try {
    const value = JSON.parse(body);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  } catch {
    // Told below.
  }
  throw new Refusal(400, "the body is not a JSON object");
}
