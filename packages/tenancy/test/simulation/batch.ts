import { storyOf } from "./story.ts";

/** `node --conditions=@berth/source batch.ts <first seed> <how many>`: which rules were broken, how often, and seeds that show it. */
const [first = 1, count = 1_000] = process.argv.slice(2).map(Number);
const broken = new Map<string, number[]>();
const beganMs = performance.now();
let seed = first;
process.on("unhandledRejection", (error) => {
  console.error(`seed ${seed}: an unhandled rejection`, error);
  process.exitCode = 1;
});
for (; seed < first + count; seed++) {
  const story = await storyOf(seed);
  if (story.broken) broken.set(story.broken.rule, [...(broken.get(story.broken.rule) ?? []), seed]);
}
for (const [rule, seeds] of broken) console.log(`${seeds.length} × ${rule}: ${seeds.slice(0, 8).join(", ")}`);
const tookS = ((performance.now() - beganMs) / 1_000).toFixed(1);
console.log(`${count} seeds from ${first} in ${tookS} s; ${broken.size} rules broken`);
if (broken.size > 0) process.exitCode = 1;
