import { describe, expect, test } from "vitest";
import { redisUrl } from "../src/redis-url.ts";
import { unknownSettings } from "../src/settings.ts";

describe("the address of Redis", () => {
  test.each([
    "redis://127.0.0.1:6379",
    "redis://redis",
    "redis://:p%40ss@10.0.0.1:6380/2",
    "rediss://user:pass@redis.example:6379?family=6",
    "redis://[::1]:6379/0",
    "unix:///run/redis.sock",
  ])("may be %s", (url) => {
    expect(redisUrl.safeParse(url).success).toBe(true);
  });

  test.each([
    ["foo", "does not begin with"],
    ["http://x", "does not begin with"],
    ["10.0.0.1:6379", "does not begin with"],
    ["/run/redis.sock", "does not begin with"],
    ["unix://", "does not begin with"],
    ["redis://", "names no host"],
    ["redis://:pass@host:port", "not a URL"],
    ["redis://host/main", "not the number of a database"],
  ])("cannot be %s, and the problem names the accepted forms without the text", (url, says) => {
    const message = redisUrl.safeParse(url).error?.issues[0]?.message ?? "";
    expect(message).toContain(says);
    expect(message).toContain("rediss:// for TLS");
    expect(message).not.toContain("pass@");
  });
});

test("a variable with Berth's prefix that no program reads is named, with the nearest known name", () => {
  const variables = { BERTH_PARALEL: "4", BERTH_KEY: "k", BERTH_OWN: "1", BERTH_XQZWVUTS: "", PATH: "/bin" };
  expect(unknownSettings(variables, ["BERTH_OWN"])).toEqual([
    "BERTH_PARALEL is not a setting of Berth and has no effect; did you mean BERTH_PARALLEL?",
    "BERTH_XQZWVUTS is not a setting of Berth and has no effect; docs/configuration.md lists them",
  ]);
});
