import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("hostile peer", () => {
  test("a hostile peer leaves no pipe, no way elsewhere and not more than the bounds, and keeps no reader from starting", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const [acme, globex] = [berth.tenant("acme"), berth.tenant("globex")];
    await acme.grant({ peers: ["globex"] });
    await acme.write("secret", "of acme");
    await acme.stop();
    await globex.exec(
      [
        "mkfifo pipe; mkdir -p a/b many locked/in; echo fine > a/fine; ln -s a/fine ok; ln -s ../a/fine a/ok",
        "ln -s /workspace/secret ws; ln -s /etc/passwd out; ln -s ../../../etc/passwd up; ln -s / root",
        "ln -s ../.. a/b/s; ln -s s/../../../etc/passwd a/b/t; ln -s ../team/globex/../../workspace/secret w2",
        "dd if=/dev/zero of=big bs=1024 count=2048; truncate -s 100g sparse; chmod 000 locked a/b",
        "i=0; while [ $i -lt 400 ]; do echo $i > many/$i; i=$((i+1)); done; chmod 000 .",
      ].join("\n"),
    );
    const within = (teamEntries: number) => ({ settings: { limits: { teamBytes: "1m", teamEntries } } });
    const looked = (teamEntries: number) =>
      acme.exec(
        "cd /team/globex; find . ! -type f ! -type d ! -type l; cat ok a/ok ws out up root/workspace/secret a/b/t w2; find . | wc -l; du -sk .",
        within(teamEntries),
      );
    const { stdout = "" } = await looked(5_000);
    expect(stdout).toMatch(/^fine\nfine\n\d+\n\d+\t\.\n$/);
    expect(Number.parseInt(stdout.split("\n")[3] ?? "", 10)).toBeLessThan(3_000);
    const listed = await acme.exec("cat /team/.snapshots.json", within(5_000));
    const { globex: report } = JSON.parse(listed.stdout ?? "");
    const few = (await looked(50)).stdout?.split("\n").at(-3);
    expect(Number(few)).toBeLessThanOrEqual(51);
    expect(report).toMatchObject({ cut: true });
    expect(report.leftOut).toBeGreaterThan(5);
  });

  test("a hostile peer that swaps files for links and pipes gives away nothing but its own files", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const [acme, globex] = [berth.tenant("acme"), berth.tenant("globex")];
    await acme.grant({ peers: ["globex"] });
    await acme.write("secret", "of acme");
    await globex.exec(
      "for i in 1 2 3 4; do echo own > f$i; done; (while :; do for i in 1 2 3 4; do rm -f f$i; ln -s /etc/passwd f$i; rm f$i; mkfifo f$i; rm f$i; echo own > f$i; done; done) >/dev/null 2>&1 & " +
        "(i=0; while [ $i -lt 500 ]; do sleep 600 & i=$((i+1)); done) >/dev/null 2>&1; true",
    );
    for (let round = 0; round < 4; round++) {
      await acme.stop();
      const seen = await acme.exec(
        "cd /team/globex && find . ! -type f ! -type d; for f in f*; do [ -e $f ] && cat $f; done; true",
      );
      expect(seen.stdout, `round ${round}`).toMatch(/^(own\n)*$/);
    }
    await globex.stop();
  });
});

describe("hostile reader", () => {
  test("a hostile reader writes nothing into a peer's files, and reaches no peer that it was not granted", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const [acme, globex, initech] = [berth.tenant("acme"), berth.tenant("globex"), berth.tenant("initech")];
    await globex.write("a", "of globex");
    await initech.write("a", "of initech");
    await acme.grant({ peers: ["globex"] });
    const tried = await acme.exec(
      [
        "cd /team/globex; echo x >> a; rm a; mv a b; ln a hard; mkfifo p; chmod 777 a; mount -o remount,rw /team",
        "ln -s /team/globex/a /workspace/link; echo x >> /workspace/link; cat /team/initech/a; ls -A /team",
        "cat /team/../workspaces/initech/a",
      ].join("; "),
    );
    expect(tried.stdout).toBe(".snapshots.json\nglobex\n");
    for (const path of ["/team/globex/a", "/team/x", "/team"])
      for (const step of [
        { kind: "write", path, content: "x" },
        { kind: "remove", path, recursive: true },
        { kind: "move", from: path, to: "b" },
        { kind: "edit", path, find: "of", replace: "x" },
      ] as const)
        await expect(acme.run(step).enqueued(), `${step.kind} ${path}`).rejects.toMatchObject({
          code: "invalid-job",
        });
    expect(await acme.write("link", "x")).toMatchObject({
      outcome: { kind: "refused", code: "denied" },
    });
    expect(await globex.exec("cat a; ls")).toMatchObject({ stdout: "of globexa\n" });
    expect(await acme.exec("cat /team/globex/a")).toMatchObject({ stdout: "of globex" });
  });
});
