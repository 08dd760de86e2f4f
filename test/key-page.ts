import { redisKeys } from "@berth/protocol";
import type { KeyRecord } from "../packages/ledger/src/key-record.ts";
import { keyRecords } from "../packages/ledger/src/key-records.ts";
import { bullNames, bullQueues, entryFields } from "../packages/ledger/src/queues/bull-records.ts";
import { wrappedMarkdown } from "./support/wrapped-markdown.ts";

export interface DescribedKey {
  /** The key, with `<…>` for its variable parts. */
  readonly key: string;
  readonly record: KeyRecord;
}

/** Every key of `redisKeys`, in its order. */
export function describedKeys(): DescribedKey[] {
  return (Object.keys(redisKeys) as (keyof typeof redisKeys)[]).map((name) => {
    const [record, key]: [KeyRecord, unknown] = [keyRecords[name], redisKeys[name]];
    const spelled = typeof key === "function" ? key(...(record.of ?? [])) : key;
    return { key: String(spelled), record };
  });
}

const intro = `# Keys in Redis

This page is made from the \`records.ts\` files of \`packages/ledger\`. The names are spelled in \`packages/protocol/src/keys.ts\`. Berth
needs Redis 7.0 or newer with \`maxmemory-policy noeviction\` and an append-only file.

A cluster keeps all keys with the same name in braces in one hash slot, and one script may use one slot. So a tenant's keys have its name in
braces. A sandbox of a session or an agent has the rest of its key behind them: \`berth:{acme}.chat:lease\` belongs to the sandbox
\`acme.chat\`. The sandbox that all tenants share is under \`{shared}\`: an \`<owner>\` is a tenant or \`shared\`.

The column "slot" has what is in a key's braces. A key without braces is in a slot of its own.

| key | type | slot | holds | expires, removed by |
|---|---|---|---|---|
`;

const fieldsIntro = `
## Fields of hashes

A name in \`<>\` stands for any number of fields.

| key | field | holds |
|---|---|---|
`;

const queuesIntro = `
## Queues of BullMQ

| queue | holds | expires, removed by |
|---|---|---|
`;

const namesIntro = `
The keys of such a queue begin with its name:

| key | type | holds |
|---|---|---|
`;

const entriesIntro = `
Fields of an entry:

| field | holds |
|---|---|
`;

function row(...cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |\n`;
}

function slotOf(key: string): string {
  const [, tag] = /\{(.+?)\}/.exec(key) ?? [];
  return tag === undefined ? "its own" : `\`${tag}\``;
}

export function keyPage(): string {
  const described = describedKeys();
  const keys = described.map(({ key, record: { type, holds, ends } }) =>
    row(`\`${key}\``, type, type === "channel" ? "—" : slotOf(key), holds, ends),
  );
  const fields = described.flatMap(({ key, record }) =>
    record.type === "hash"
      ? Object.entries(record.fields).map(([field, holds], index) =>
          row(index === 0 ? `\`${key}\`` : "", `\`${field}\``, holds),
        )
      : [],
  );
  const queues = bullQueues.map(({ key, holds, ends }) => row(`\`${key}\``, holds, ends));
  const names = Object.entries(bullNames).map(([name, { type, holds }]) => row(`\`:${name}\``, type, holds));
  const entries = Object.entries(entryFields).map(([field, holds]) => row(`\`${field}\``, holds));
  const parts = [
    ...[intro, ...keys, fieldsIntro, ...fields, queuesIntro, ...queues],
    ...[namesIntro, ...names, entriesIntro, ...entries],
  ];
  return wrappedMarkdown(parts.join(""));
}

if (process.argv[1] === import.meta.filename) process.stdout.write(keyPage());
