/**
 * Plain JavaScript without a build: runs the same program for several tenants at once, and prints each output.
 *
 *   REDIS_URL=redis://127.0.0.1:6379 node --conditions=@berth/source examples/plain.mjs
 */
import { Berth } from "@berth/client";

const berth = new Berth({ redis: process.env.REDIS_URL ?? "redis://127.0.0.1:6379" });
const tenants = ["ada", "grace", "linus"];

// Each call enqueues its job at once. Tenants run in parallel; a session runs its jobs in the order of the calls.
const answers = tenants.map((name) => {
  const tenant = berth.tenant(name);
  tenant.write("hello.py", "import sys\nprint('hello from', sys.argv[1])\n");
  return tenant.exec(["python3", "hello.py", name]);
});

for (const { outcome, stdout } of await Promise.all(answers)) {
  console.log(outcome.kind, stdout?.trim());
}

// Live output: each piece arrives while the command runs.
for await (const event of berth.tenant("ada").exec("for n in 1 2 3; do echo $n; sleep 0.1; done").events()) {
  if (event.type === "stdout") process.stdout.write(event.bytes);
  if (event.type === "finished") console.log(event.result.outcome.kind);
}

await berth.close();
