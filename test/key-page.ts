import { fleetQueuePrefix, redisKeys, sandboxKey } from "@berth/protocol";
import { keyDescriptions } from "./key-descriptions.ts";

type KeyName = keyof typeof redisKeys;

/** What stands for the variable parts of a key, where it is not one id. */
const variables: { readonly [name in KeyName]?: readonly string[] } = {
  ...{ lease: ["<tenant>"], events: ["<tenant>", "<job id>"], staged: ["<tenant>", "<job id>"] },
  ...{
    job: ["<tenant>", "<job id>"],
    sandboxOf: ["<job id>"],
    sandboxesOf: ["<tenant>"],
    grants: ["<tenant>"],
  },
  ...{ persisted: ["<sandbox key>", "<tenant>", "<agent>", "<session>"], conversations: ["<sandbox key>"] },
  ...{ profileHistory: ["<layer>"] },
  ...{
    waitingBytes: ["<owner>", "<tenant>"],
    resultBytes: ["<owner>", "<tenant>"],
    workspacesOf: ["<tenant>"],
    delayedOf: ["<owner>", "<tenant>"],
    stagedOf: ["<owner>", "<tenant>"],
    heldOf: ["<tenant>"],
    schedulesOf: ["<tenant>"],
    batchesOf: ["<owner>"],
    batchesOpenOf: ["<owner>"],
    deadOf: ["<tenant>"],
    usage: ["<owner>", "<tenant>"],
    unfinishedOf: ["<owner>", "<tenant>"],
    outbox: ["<tenant>"],
    slotWrites: ["<tenant>"],
    approval: ["<tenant>", "<job id>"],
    egressLog: ["<owner>"],
  },
  ...{ inbox: ["<client>"], inboxWake: ["<client>"], worker: ["<worker>"], wake: ["<instance>"] },
  ...{ artifactBytes: ["<sha256>"], artifactBlob: ["<place>", "<sha256>"], artifactGarbage: ["<place>"] },
  ...{ idempotency: ["<hash>"], boardSession: ["<hash>"], room: ["<offers>"], turns: ["<offers>"] },
};

/** Those that BullMQ fills. */
const queues = [
  [
    "berth:{<tenant>}:jobs:*",
    "the sandbox's own queue. Attempts that did not succeed are under `failed`. Field `ended` of an entry: how that attempt ended, or `retrying`",
    "entry of an ended attempt: a day later, or when a hundred newer ones are in the same list; the whole queue by the sweep after BERTH_FORGET_MS unused",
  ],
  [
    `${fleetQueuePrefix}:offers[-<pool>][@<host>]:*`,
    "sandboxes of a pool (and of one home host) that have work and no holder, at most one each. Their priority is the turn of their tenant",
    "member: when taken",
  ],
  [
    `${fleetQueuePrefix}:schedule:*`,
    "delayed jobs, retries and the ticks of schedules, until they are due",
    "entry: when handed on",
  ],
  [
    `${fleetQueuePrefix}:dead:*`,
    "dead letters, as failed jobs",
    "seven days, the newest 100,000; when re-driven",
  ],
] as const;

const intro = `# Keys in Redis

Spelled in one place, \`packages/protocol/src/keys.ts\`; this page is made from \`test/key-descriptions.ts\`. Berth needs Redis 7.0 or newer
with \`maxmemory-policy noeviction\` and an append-only file.

A cluster keeps all keys with the same name in braces in one hash slot, and one script may use one slot. So a tenant's keys have its name in
braces. A sandbox of a session or an agent has the rest of its key behind them: \`${redisKeys.lease(sandboxKey.parse("acme.chat"))}\` belongs to the sandbox
\`acme.chat\`. The sandbox that all tenants share is under \`{shared}\`.

| key | type | holds | expires, removed by |
|---|---|---|---|
`;

function spelled(name: KeyName): string {
  const key: unknown = redisKeys[name];
  return typeof key === "function" ? String(key(...(variables[name] ?? ["<id>"]))) : String(key);
}

export function keyPage(): string {
  const names = Object.keys(redisKeys) as KeyName[];
  const own = names.map((name) => {
    const { type, holds, ends } = keyDescriptions[name];
    return `| \`${spelled(name)}\` | ${type} | ${holds} | ${ends} |\n`;
  });
  const bull = queues.map(([key, holds, ends]) => `| \`${key}\` | BullMQ's | ${holds} | ${ends} |\n`);
  return [intro, ...own, ...bull].join("");
}

if (process.argv[1] === import.meta.filename) process.stdout.write(keyPage());
