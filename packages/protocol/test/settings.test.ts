import { describe, expect, test } from "vitest";
import { redisAddress, redisUrl } from "../src/redis-url.ts";
import { unknownSettings } from "../src/settings.ts";

describe("address of Redis", () => {
  test.each([
    "redis://127.0.0.1:6379",
    "redis://redis",
    "redis://:p%40ss@10.0.0.1:6380/2",
    "rediss://user:pass@redis.example:6379?family=6",
    "redis://[::1]:6379/0",
    "unix:///run/redis.sock",
    "redis+sentinel://s1,s2:26380,[::1]/mymaster",
    "rediss+sentinel://user:p%40ss@s1:26379/my-master.1/2?sentinel_username=s&sentinel_password=p%40ss",
    "redis+cluster://10.0.0.1:7000,10.0.0.2:7001,n3.example",
    "rediss+cluster://user:pass@[::1]:7000/0",
  ])("the address of Redis may be %s", (url) => {
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
    ["redis://a:1,b:2", "only redis+sentinel:// and redis+cluster:// have"],
    ["redis+sentinel://:pass@s1:26379", "does not name the primary"],
    ["redis+sentinel://:pass@s1/mymaster/db", "what follows the primary's name"],
    ["redis+sentinel://:pass@s1/mymaster?password=x", '"password" is not an option of redis+sentinel://'],
    ["redis+cluster://", "names no host"],
    ["redis+cluster://:pass@a:7000,b:seven", "host 2 of the list"],
    ["redis+cluster://:pass@a:7000,b:70000", "the port of host 2"],
    ["redis+cluster://:pass@a:7000/1", "no database but 0"],
    ["redis+cluster://us:pa%ss@a:7000", "not percent-encoding"],
    ["redis+cluster://a:7000?tls=1", '"tls" is not an option of redis+cluster://'],
  ])("the address of Redis cannot be %s, and the problem does not repeat the text", (url, says) => {
    const message = redisUrl.safeParse(url).error?.issues[0]?.message ?? "";
    expect(message).toContain(says);
    expect(message).toContain("for TLS");
    expect(message).not.toContain("pass@");
  });

  test("the address of Redis names every Sentinel or node, the primary, and users with their passwords decoded", () => {
    expect(
      redisAddress(
        "rediss+sentinel://us%3Aer:p%40ss@s1,[::1]:5/primary/2?sentinel_username=s&sentinel_password=a%26b",
      ),
    ).toEqual({
      kind: "sentinel",
      hosts: [
        { host: "s1", port: 26_379 },
        { host: "::1", port: 5 },
      ],
      tls: true,
      primary: "primary",
      database: 2,
      user: { username: "us:er", password: "p@ss" },
      sentinelUser: { username: "s", password: "a&b" },
    });
    expect(redisAddress("redis+cluster://:p@a:7000,b")).toEqual({
      kind: "cluster",
      hosts: [
        { host: "a", port: 7_000 },
        { host: "b", port: 6_379 },
      ],
      tls: false,
      user: { password: "p" },
    });
  });
});

test("a variable with Berth's prefix that no program reads is named, with the nearest known name", () => {
  const variables = { BERTH_PARALEL: "4", BERTH_KEY: "k", BERTH_OWN: "1", BERTH_XQZWVUTS: "", PATH: "/bin" };
  expect(unknownSettings(variables, ["BERTH_OWN"])).toEqual([
    "BERTH_PARALEL is not a setting of Berth and has no effect; did you mean BERTH_PARALLEL?",
    "BERTH_XQZWVUTS is not a setting of Berth and has no effect; docs/configuration.md lists them",
  ]);
});
