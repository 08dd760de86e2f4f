import { expect, test } from "vitest";
import { type Leak, LeakStream, leaksIn } from "../src/index.ts";

const keys = {
  openai: `sk-${"aB3".repeat(14)}`,
  anthropic: `sk-ant-api03-${"xY7-".repeat(10)}`,
  github: `ghp_${"a1B2".repeat(9)}`,
  google: `AIza${"Zz09_".repeat(7)}`,
  slack: "xoxb-123456789012-abcdefABCDEF",
  telegram: `123456789:${"Ab-_9".repeat(7)}`,
  discord: `M${"a".repeat(23)}.Abc-12.${"z".repeat(27)}`,
} as const;

const encodings = {
  plain: (key: string) => key,
  base64: (key: string) => Buffer.from(key).toString("base64"),
  hex: (key: string) => Buffer.from(key).toString("hex"),
  url: (key: string) => [...Buffer.from(key)].map((byte) => `%${byte.toString(16)}`).join(""),
} as const;

for (const [kind, key] of Object.entries(keys))
  for (const [encoding, encode] of Object.entries(encodings))
    test(`a key of the kind ${kind} is found in ${encoding} form`, () => {
      const found = leaksIn(`before ${encode(key)} behind`);
      expect(found.map((leak) => [leak.kind, leak.encoding])).toContainEqual([kind, encoding]);
      expect(JSON.stringify(found)).not.toContain(key);
    });

test("the same key has one fingerprint in every encoding", () => {
  const prints = Object.values(encodings).map((encode) => leaksIn(encode(keys.github))[0]?.fingerprint);
  expect(new Set(prints).size).toBe(1);
  expect(prints[0]).toMatch(/^[0-9a-f]{12}$/);
});

test("ordinary output is no leak", () => {
  const texts = [
    "npm warn deprecated task-list-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    Buffer.alloc(3_000, "The quick brown fox. ").toString("base64"),
    "commit 0123456789abcdef0123456789abcdef01234567",
    "12:30:01.123456 GET /index.html?risk-assessment-of-the-whole-thing",
  ];
  for (const text of texts) expect(leaksIn(text)).toEqual([]);
});

function run(block: boolean, chunks: readonly string[]) {
  const leaks: Leak[] = [];
  const stream = new LeakStream({ block, onLeak: (leak) => leaks.push(leak) });
  const out = chunks.map((chunk) => stream.push(Buffer.from(chunk)).toString());
  return { leaks, out, text: out.join("") + stream.end().toString() };
}

test("blocking masks a key that comes in pieces, and nothing else", () => {
  const { leaks, text } = run(true, ["key: ghp_", "a1B2".repeat(5), "a1B2".repeat(4), "\nnext line\n"]);
  expect(text).toBe(`key: ${"*".repeat(40)}\nnext line\n`);
  expect(leaks).toHaveLength(1);
});

test("reporting changes and delays no byte", () => {
  const chunks = ["key: ghp_", "a1B2".repeat(9), "\nnext"];
  const { leaks, out } = run(false, chunks);
  expect(out).toEqual(chunks);
  expect(leaks.map(({ kind }) => kind)).toEqual(["github"]);
});

test("blocking masks a private key from its first line to its last", () => {
  const lines = [
    "-----BEGIN RSA PRIVATE KEY-----\n",
    "MIIabc\n",
    "def=\n",
    "-----END RSA PRIVATE KEY-----\n",
    "after\n",
  ];
  const { text, leaks } = run(true, lines);
  expect(text).toMatch(/^\*+\nafter\n$/);
  expect(leaks.map(({ kind }) => kind)).toEqual(["private-key"]);
});
