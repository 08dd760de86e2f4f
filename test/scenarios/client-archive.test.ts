import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";

describe("tenant's archive", () => {
  test("a tenant's archive comes out as tar and goes in again, as bytes or as base64, here or elsewhere", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const [acme, globex] = [berth.tenant("acme"), berth.tenant("globex")];
    await acme.copy({ "app/one": "1\n", "app/sub/two": "2\n", other: "3\n" });
    const some = await acme.archive("out", "app");
    expect(some).toMatchObject({ outcome: { kind: "done" }, encoding: "base64", count: 4 });
    const base64 = some.content ?? "";
    expect((await acme.archive("in", base64, { path: "copy" })).outcome).toEqual({ kind: "done" });
    expect((await globex.archive("in", Buffer.from(base64, "base64"))).count).toBe(4);
    const look = "find . -type f | sort | xargs tail -n +1 | grep -v '^$'";
    expect((await globex.exec(look)).stdout).toBe("==> ./app/one <==\n1\n==> ./app/sub/two <==\n2\n");
    expect((await acme.exec("cat copy/app/one copy/app/sub/two")).stdout).toBe("1\n2\n");
    const all = await acme.archive("out");
    await berth.tenant("all").archive("in", all.content ?? "");
    const names = (await berth.tenant("all").glob("**", {})).entries?.map(({ path }) => path);
    expect(names).toEqual(expect.arrayContaining(["app/one", "other", "copy/app/one"]));
    const two = await acme.archive("out", ["app/one", "other"], { session: "side" });
    expect(two.count).toBe(2);
  });

  test("a tenant's archive that is none is refused, and nothing is unpacked", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    expect((await acme.archive("in", new TextEncoder().encode("no tar"))).outcome.kind).toBe("refused");
    await expect(acme.archive("in", "no base64!").enqueued()).rejects.toThrow(/invalid job: request.content/);
    expect((await acme.archive("out", "missing")).outcome).toMatchObject({ code: "not-found" });
    expect((await acme.list()).entries).toEqual([]);
  });
});
