import { type GivenNames, givenNames, type Job } from "@berth/protocol";

/** As it is kept in Redis. */
export function namesText(names: GivenNames | undefined): string {
  return names === undefined || Object.keys(names).length === 0 ? "" : JSON.stringify(names);
}

export function readNames(text: string | null | undefined): GivenNames | undefined {
  if (!text) return undefined;
  try {
    return givenNames.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The given names among a job's that are part of its sandbox's key. */
export function namesOfSandbox({ names, scope }: Pick<Job, "names" | "scope">): GivenNames | undefined {
  const { tenant, session, agent } = names ?? {};
  const own = scope === "shared" ? {} : { ...(tenant === undefined ? {} : { tenant }) };
  if (scope === "session" && session !== undefined) return { ...own, session };
  return scope === "agent" && agent !== undefined ? { ...own, agent } : own;
}
