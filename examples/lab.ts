import { Berth } from "@berth/client";
const berth = new Berth({ redis: "unix:///tmp/docs-lab/redis.sock" });
const show = (...x: unknown[]) => console.dir(x, { depth: 6 });
const pri = berth.tenant("pri");
const first = await pri.exec("sleep 1; echo first >> order").enqueued();
await pri.exec("echo low >> order", {}, { priority: 5 }).enqueued();
await pri.exec("echo second >> order").enqueued();
await pri.exec("echo low2 >> order", {}, { priority: 5 }).enqueued();
await first.result;
show("priority", (await pri.exec("cat order", {}, {priority: 9})).value.stdout);
await pri.exec("rm order");
// retries vs session order
void pri.exec("echo a >> order; test $(grep -c a order) = 2", {}, { retry: { attempts: 2, backoffMs: 800, jitter: 0 } });
await pri.exec("echo b >> order");
await new Promise((r) => setTimeout(r, 2500));
show("retry order", (await pri.exec("cat order")).value.stdout);
// big output
const job = pri.exec("head -c 3000000 /dev/zero | tr '\\0' x");
let n = 0; for await (const e of job.events()) if (e.type === "stdout") n += e.bytes.length;
const r = await job; show("kept", n, r.value.stdout?.length, r.value.cutBytes, r.outcome);
// pool after destroy
const p = await pri.exec("true", {}, { pool: "gpu" }).then(() => 0, (e) => e.code); show(p);
await pri.destroy();
show("after destroy", await pri.exec("true", {}, { pool: "gpu" }).then(() => 0, (e) => e.code));
show("deadline", (await pri.exec("true", {}, { deadlineAtMs: Date.now() - 1 })).outcome);
try { berth.tenant("No Good"); } catch (e) { show((e as Error).name, (e as Error).message); }
show("oom", (await pri.exec("python3 -c 'x = bytearray(10**9)'")).outcome);
show("quota", (await pri.exec("head -c 2G /dev/zero > big", { limits: { timeoutMs: 30000 } })).outcome); await pri.remove("big");
show("killed", (await pri.exec("kill -9 $$")).outcome);
show("not found", (await pri.exec(["nope"])).outcome, (await pri.exec("nope")).outcome);
const pw = await pri.write("f", "1"); show((await pri.write("f", "2", { ifMatch: "0".repeat(64) })).outcome, (await pri.write("f", "2", { mustNotExist: true })).outcome, (await pri.write("f", "2", { ifMatch: pw.value.sha256! })).outcome);
show((await pri.edit("f", "zzz", "y")).outcome);
const a = pri.exec("date +%N"); const [x, y] = await Promise.all([a, a]); show(x.value.stdout === y.value.stdout);
show((await pri.exec("cat", { stdin: "in", env: { A: "1" }, cwd: "" })).value, (await pri.exec("pwd; id -u; echo $HOME; env")).value.stdout);
show((await pri.code("python", "import sys; print(sys.argv)", { args: ["a"] })).value.stdout, (await pri.code("node", "1")).outcome);
await berth.close();
