import { World } from "./world.ts";

/** `node --conditions=@berth/source batch.ts <first seed> <how many>`: which rules were broken, how often, and a seed of each. */
const [first = 1, count = 1_000] = process.argv.slice(2).map(Number);
const broken = new Map<string, number[]>();
const began = performance.now();
let seed = first;
process.on("unhandledRejection", (error) => {
  console.error(`seed ${seed}: a promise nobody handles`, error);
  process.exitCode = 1;
});
let outlived = 0;
for (; seed < first + count; seed++) {
  const world = new World(seed);
  const violation = await world.run();
  outlived = Math.max(outlived, world.rules.longestOutlivingLeases);
  if (violation) broken.set(violation.rule, [...(broken.get(violation.rule) ?? []), seed]);
}
for (const [rule, seeds] of broken) console.log(`${seeds.length} × ${rule}: ${seeds.slice(0, 8).join(", ")}`);
const tookS = ((performance.now() - began) / 1_000).toFixed(1);
console.log(
  `${count} seeds from ${first} in ${tookS} s; a command outlived its epoch by ${outlived.toFixed(2)} leases at most`,
);
if (broken.size > 0) process.exitCode = 1;
