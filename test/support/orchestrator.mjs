// An orchestrator in plain JavaScript, as a user without TypeScript would write it. Prints one line of JSON for each result.
//   node --conditions=@berth/source orchestrator.mjs <redis> batch <id> <count>    jobs that each leave a line in their tenant's ledger
//   node --conditions=@berth/source orchestrator.mjs <redis> tour                  each thing once
import { Berth } from "@berth/client";
import { isFault } from "@berth/protocol";

const [, , redis, mode, id, count] = process.argv;
const berth = new Berth({ redis });

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function* orders(total) {
  for (let index = 0; index < total; index++) {
    yield {
      tenant: `tenant-${index % 2}`,
      request: { kind: "exec", command: `echo ${index} >> ledger; echo ${index}` },
    };
  }
}

async function batch() {
  const running = berth.batch(orders(Number(count)), { id, inFlight: 40 });
  for await (const { index, result } of running.results()) {
    say({ index, kind: result.outcome.kind, stdout: result.value.stdout });
  }
}

async function tour() {
  const acme = berth.tenant("acme");
  await acme.write("main.py", "print(6 * 7)");
  const { stdout } = await acme.exec("python3 main.py");
  say({ stdout });
  const types = [];
  for await (const event of acme.exec("echo hello").events()) types.push(event.type);
  say({ types });
  const invalid = await acme.exec("x", { cwd: "/etc" }).then(
    () => false,
    (error) => isFault(error, "invalid-job"),
  );
  say({ invalid });
  for await (const { jobId, ack } of berth.results("tour", { consumer: "tour-1" })) {
    await ack();
    say({ acknowledged: typeof jobId });
    break;
  }
}

await (mode === "batch" ? batch() : tour());
await berth.close();
