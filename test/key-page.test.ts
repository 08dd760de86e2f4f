import { readFile } from "node:fs/promises";
import { redisKeys } from "@berth/protocol";
import { expect, test } from "vitest";

/** As the page writes a key: its variable parts in angle brackets. */
function spelled(key: unknown): string {
  if (typeof key === "string") return key;
  const text: string = (key as (...parts: string[]) => string)("A", "B", "C", "D");
  return text.replaceAll(/\b[ABCD]\b/g, "<>");
}

const withoutNames = (text: string) => text.replaceAll(/<[^>]*>/g, "<>");

test("docs/redis-keys.md has a row for every key, and none for a key that is gone", async () => {
  const page = await readFile(new URL("../docs/redis-keys.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, key]) => withoutNames(key ?? ""));
  const keys = Object.values(redisKeys).map(spelled);
  // BullMQ spells what is inside its queues.
  const ours = rows.filter((row) => !row.endsWith(":*"));
  expect(ours.toSorted()).toEqual(keys.toSorted());
});
