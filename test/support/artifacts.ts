import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JobSandbox, RunContext } from "@berth/jobs";
import { type ArtifactLimits, type ArtifactOwner, ArtifactStore, DirectoryStore } from "@berth/ledger";
import { type JobRequestInput, type JobResult, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { TestHost } from "./host.ts";
import { run as runKind } from "./job-kinds.ts";
import { test as withRedis } from "./redis.ts";

export const owner: ArtifactOwner = {
  tenant: "acme",
  key: sandboxKey.parse("acme"),
  agent: "default",
  session: "main",
  jobId: "job-1",
};

export async function* chunksOf(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array, void, void> {
  for (const chunk of chunks) yield Buffer.from(chunk as Uint8Array);
}

/** A store in a directory of the test's own. */
export class TestStore {
  readonly redis: Redis;
  readonly directory: string;
  readonly store: ArtifactStore;

  constructor(redis: Redis, directory: string, limits: Partial<ArtifactLimits> = {}) {
    this.redis = redis;
    this.directory = directory;
    this.store = new ArtifactStore(redis, new DirectoryStore(directory), limits);
  }

  with(limits: Partial<ArtifactLimits>): TestStore {
    return new TestStore(this.redis, this.directory, limits);
  }

  /** Every file but the directory's id. */
  async files(): Promise<string[]> {
    const found = await readdir(this.directory, { recursive: true, withFileTypes: true });
    return found.filter((entry) => entry.isFile() && entry.name !== "place-id").map(({ name }) => name);
  }

  /** Every key in Redis that is about artifacts, found by a scan of all keys. */
  async keys(): Promise<string[]> {
    return (await this.redis.keys("berth:*")).sort();
  }

  async kept(path: string, content: string | Uint8Array, of: Partial<ArtifactOwner> = {}) {
    const answer = await this.store.put({ ...owner, ...of }, path, chunksOf(content));
    if (!("kept" in answer)) throw new Error(`refused: ${answer.refused.reason}`);
    return answer.kept;
  }
}

/** Paths of the artifacts that were kept. */
export function paths({ value }: JobResult): string[] {
  return value.artifacts?.map(({ path }) => path) ?? [];
}

/** Refusal codes by path. */
export function refused({ value }: JobResult): Record<string, string> {
  return Object.fromEntries((value.artifactsRefused ?? []).map(({ path, code }) => [path, code]));
}

let jobs = 0;

/** Carries a request out as a worker does, as a new job each time unless an id is given. */
export function run(
  { store }: TestStore,
  sandbox: JobSandbox,
  request: JobRequestInput,
  { of = {}, ...context }: Partial<RunContext> & { readonly of?: Partial<ArtifactOwner> } = {},
): Promise<JobResult> {
  const artifacts = store.forJob({ ...owner, jobId: `job-${jobs++}`, ...of });
  return runKind(sandbox, request, { artifacts, ...context });
}

export const test = withRedis.extend<{ artifacts: TestStore; host: TestHost }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  host: async ({}, use) => {
    const host = new TestHost(await mkdtemp(join(tmpdir(), "berth-test-")));
    try {
      await use(host);
    } finally {
      await host.close();
    }
  },
  artifacts: async ({ redis }, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-artifacts-"));
    try {
      await use(new TestStore(redis.connect(), directory));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
});
