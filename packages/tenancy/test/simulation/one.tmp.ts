import { World } from "./world.ts";

const seed = Number(process.argv[2]);
const words = process.argv.slice(4);
const w = new World(seed);
const b = performance.now();
const v = await w.run();
console.log(seed, v?.rule, v?.detail, JSON.stringify(w.settings));
console.log(w.trace.lines(Number(process.argv[3] ?? 80), words.length ? words : (v?.about ?? [])));
console.log((performance.now() - b).toFixed(0), "ms", w.time.nowMs, "virtual", w.time.steps);
