import { assertNever, problemsOf } from "@berth/protocol";
import { type ContainerRules, label, sandboxContainer, withTag } from "@berth/sandbox/container";
import { z } from "zod";
import type { CallName, Known } from "./calls.ts";
import type { Engine, EngineCall } from "./engine.ts";
import { mountComplaints } from "./mount-check.ts";
import { Refusal } from "./refusal.ts";

/** The compose file sets this label on the workers' own containers. */
const workerLabel = "berth.role";
/** The fields of the engine's description of itself that workers need. */
const infoFields = ["ID", "Name", "ServerVersion", "SecurityOptions", "CgroupVersion", "Runtimes"];

/** The fields of the engine's description of a container. */
const containerFacts = z.looseObject({
  Id: z.string(),
  Config: z.looseObject({ Labels: z.record(z.string(), z.string()).nullish(), User: z.string().default("") }),
  HostConfig: z.looseObject({
    Mounts: z
      .array(z.looseObject({ Source: z.string().default(""), Target: z.string().default("") }))
      .nullish(),
  }),
});
type ContainerFacts = z.infer<typeof containerFacts>;

/** A call to the engine, or an answer that needs none. */
export type RewrittenCall = EngineCall | { readonly value: unknown };

/**
 * Turns a worker's call into the call that the engine gets: the same one, written anew from the parts that the proxy
 * understood, and only about containers of the fleet.
 */
export class CallRewriter {
  readonly #engine: Engine;
  readonly #rules: ContainerRules;
  readonly #container: ReturnType<typeof sandboxContainer>;

  constructor(engine: Engine, rules: ContainerRules) {
    this.#engine = engine;
    this.#rules = rules;
    this.#container = sandboxContainer(rules);
  }

  async forCall({ call, id }: Known<CallName>, query: URLSearchParams, body: string): Promise<RewrittenCall> {
    switch (call) {
      case "ping":
        return { method: "GET", target: "/_ping" };
      case "info":
        return { value: picked(await this.#engine.value("/info"), infoFields) };
      case "list":
        return { method: "GET", target: `/containers/json?all=1&filters=${this.#fleetFilter()}` };
      case "create":
        return this.#create(query.get("name") ?? "", body);
      case "inspect":
        return { value: await this.#inspect(id) };
      case "start":
        return { method: "POST", target: `/containers/${await this.#startable(id)}/start` };
      case "remove":
        return { method: "DELETE", target: `/containers/${(await this.#facts(id)).Id}?force=1&v=1` };
      case "image":
        return { method: "GET", target: `/images/${this.#listed(id)}/json` };
      case "pull":
        return this.#pull(query);
      default:
        return assertNever(call);
    }
  }

  /** Uses the full id: unlike a name, it never belongs to another container later. */
  async forAttach(id: string): Promise<EngineCall> {
    const target = `/containers/${(await this.#facts(id)).Id}/attach?stream=1&stdin=1&stdout=1&stderr=1`;
    return { method: "POST", target };
  }

  async #inspect(id: string): Promise<unknown> {
    const facts = await this.#look(id);
    const labels = facts?.Config.Labels ?? {};
    // A worker asks for its own container's labels. The answer leaves out every worker's environment, which holds secrets.
    if (facts && labels[workerLabel] === "worker") return { Id: facts.Id, Config: { Labels: labels } };
    return this.#own(facts, id);
  }

  async #facts(id: string): Promise<ContainerFacts> {
    return this.#own(await this.#look(id), id);
  }

  async #look(id: string): Promise<ContainerFacts | undefined> {
    const value = await this.#engine.value(`/containers/${id}/json`);
    return value === undefined ? undefined : containerFacts.parse(value);
  }

  /** Answers for another fleet's container as the engine does for one that does not exist. */
  #own(facts: ContainerFacts | undefined, id: string): ContainerFacts {
    if (facts?.Config.Labels?.[label.fleet] === this.#rules.fleet) return facts;
    throw new Refusal(404, `no such container in this fleet: ${id}`);
  }

  /** Returns the full id. Checks the mounts again, because the engine mounts when it starts a container. */
  async #startable(id: string): Promise<string> {
    const { Id, Config, HostConfig } = await this.#facts(id);
    const found = await mountComplaints(HostConfig.Mounts ?? [], Config.User, this.#rules);
    if (found.length > 0) throw new Refusal(403, found.join("; "));
    return Id;
  }

  async #create(name: string, body: string): Promise<EngineCall> {
    if (!name.startsWith(`berth-${this.#rules.fleet}-`) || !/^[A-Za-z0-9_.-]+$/.test(name))
      throw new Refusal(
        403,
        `${name || "no name"} is not a name of this fleet's containers: they begin with berth-${this.#rules.fleet}-`,
      );
    // dockerode sends the name in the body, too.
    const { name: _, ...given } = parsed(body);
    const container = this.#container.safeParse(given);
    if (!container.success)
      throw new Refusal(
        403,
        `workers may create only sandboxes, and this is none: ${problemsOf(container.error).join("; ")}`,
      );
    const { HostConfig, User } = container.data;
    const found = await mountComplaints(HostConfig.Mounts, User, this.#rules);
    if (found.length > 0) throw new Refusal(403, found.join("; "));
    return { method: "POST", target: `/containers/create?name=${name}`, body: container.data };
  }

  #listed(image: string): string {
    if (this.#rules.images.includes(withTag(image))) return image;
    throw new Refusal(403, `${image} is not an image of this fleet's: BERTH_PROXY_IMAGES lists them`);
  }

  /** From a registry only: `fromSrc` would make an image of any address or of the body. */
  #pull(query: URLSearchParams): EngineCall {
    const image = query.get("fromImage");
    const tag = query.get("tag");
    if (!image || query.has("fromSrc")) throw new Refusal(403, "workers may pull an image by its name only");
    this.#listed(tag ? `${image}${tag.includes(":") ? "@" : ":"}${tag}` : image);
    const asked = new URLSearchParams({ fromImage: image, ...(tag ? { tag } : {}) });
    return { method: "POST", target: `/images/create?${asked}` };
  }

  #fleetFilter(): string {
    return encodeURIComponent(JSON.stringify({ label: [`${label.fleet}=${this.#rules.fleet}`] }));
  }
}

function picked(value: unknown, names: readonly string[]): Record<string, unknown> {
  const known = z.looseObject({}).parse(value ?? {});
  return Object.fromEntries(
    names.filter((name) => known[name] !== undefined).map((name) => [name, known[name]]),
  );
}

function parsed(body: string): Record<string, unknown> {
  try {
    return z.looseObject({}).parse(JSON.parse(body));
  } catch {
    throw new Refusal(400, "the body is not a JSON object");
  }
}
