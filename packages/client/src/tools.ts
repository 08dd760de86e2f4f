import { checked, type SetToolOptions, type StoredTool, ToolStore } from "@berth/ledger";
import {
  agentName,
  profileName,
  type ToolDefinition,
  type ToolDefinitionInput,
  tenantId,
  toolName,
  toolRefusal,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** A tool as callers see it. */
export interface ToolView extends Pick<ToolDefinition, "description" | "parameters" | "effect" | "profile"> {
  readonly name: string;
  readonly version: number;
}

/** The tenant and agent that use the tools. */
export interface ToolUser {
  readonly tenant: string;
  readonly agent?: string | undefined;
  /** Absent: include tools that need a profile of their own. */
  readonly profile?: string | undefined;
}

/** Custom tools: named commands with parameters, which an operator defines and jobs of kind `tool` run; docs/tools.md. */
export class Tools {
  readonly #store: ToolStore;

  /** @internal Use `berth.tools`. */
  constructor(redis: Redis) {
    this.#store = new ToolStore(redis);
  }

  /** Tools that a tenant's jobs may use. */
  async usableBy({ tenant, agent, profile }: ToolUser): Promise<ToolView[]> {
    const user = {
      tenant: checked(tenantId, tenant, "the tenant"),
      agent: agent === undefined ? undefined : checked(agentName, agent, "the agent"),
      profile: profile === undefined ? undefined : checked(profileName, profile, "the profile"),
    };
    const all = await this.#store.list();
    return all.filter(({ definition }) => toolRefusal(definition, user) === undefined).map(viewOf);
  }

  /** All tools, ordered by name. */
  list(): Promise<StoredTool[]> {
    return this.#store.list();
  }

  /** Undefined: no such tool. */
  get(name: string): Promise<StoredTool | undefined> {
    return this.#store.get(checked(toolName, name, "the tool's name"));
  }

  /** Defines or replaces a tool. Jobs that start from now on use the new definition. Throws `invalid-tool` with every problem. */
  async set(
    name: string,
    definition: ToolDefinitionInput,
    { by = "client", ifVersion }: Partial<SetToolOptions> = {},
  ): Promise<StoredTool> {
    return await this.#store.set(checked(toolName, name, "the tool's name"), definition, { by, ifVersion });
  }

  /** False: no such tool. Jobs that call it are refused from now on. */
  remove(name: string): Promise<boolean> {
    return this.#store.remove(checked(toolName, name, "the tool's name"));
  }
}

export function viewOf({ name, version, definition }: StoredTool): ToolView {
  const { description, parameters, effect, profile } = definition;
  return { name, version, description, parameters, effect, ...(profile === undefined ? {} : { profile }) };
}
