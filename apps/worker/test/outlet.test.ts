import type { JobResult } from "@berth/protocol";
import { Scrubber } from "@berth/scrub";
import { expect, test } from "vitest";
import { Outlet } from "../src/secrets/outlet.ts";

const value = "sk-secret-0123456789abcdef";
const scrubber = new Scrubber([Buffer.from(value)]);
const outlet = () => new Outlet({ scrubber: () => scrubber, leaks: "off", onLeak: () => {} });
const timing = { wallMs: 1, cpuMs: 1 };

test("a value whose parts come by two streams is in no text of both, wherever it is cut and whichever pauses", () => {
  for (let cut = 1; cut < value.length; cut++)
    for (const pauses of [false, true])
      for (const [first, second] of [["stdout", "stderr"] as const, ["stderr", "stdout"] as const]) {
        const one = outlet();
        const filter = one.filter();
        const parts = filter.push(first, Buffer.from(value.slice(0, cut))).map((bytes) => bytes.toString());
        if (pauses && filter.isWaiting) parts.push(...filter.release().map(({ bytes }) => bytes.toString()));
        parts.push(...filter.push(second, Buffer.from(value.slice(cut))).map((bytes) => bytes.toString()));
        parts.push(...filter.end().map(({ bytes }) => bytes.toString()));
        const shown = parts.join("");
        // As a reader of the job's events has it.
        expect(shown, `${cut} ${pauses} ${first}`).not.toContain(value);
        const result = one.result({
          outcome: { kind: "exited", code: 0 },
          value: { stdout: "", stderr: "", shown } as JobResult["value"],
          timing,
        });
        expect(JSON.stringify(result), `${cut} ${pauses} ${first}`).not.toContain(value);
      }
});

test("a value whose parts come by two commands of a job is in no text of both", () => {
  for (let cut = 1; cut < value.length; cut++)
    for (const [first, second] of [["stdout", "stderr"] as const, ["stdout", "stdout"] as const]) {
      const one = outlet();
      const parts = [[first, value.slice(0, cut)] as const, [second, value.slice(cut)] as const].map(
        ([stream, text]) => {
          const filter = one.filter();
          const left = filter.push(stream, Buffer.from(text));
          return Buffer.concat([...left, ...filter.end().map(({ bytes }) => bytes)]).toString();
        },
      );
      expect(parts.join(""), `${cut} ${second}`).not.toContain(value);
    }
});

test("a value between whose parts output was cut away is in no text of a result", () => {
  const value_ = { stdout: `head ${value} tail`, stderr: value, shown: value } as JobResult["value"];
  const result = outlet().result({ outcome: { kind: "exited", code: 0 }, value: value_, timing });
  expect(JSON.stringify(result)).not.toContain(value);
  expect(result.value.stdout).toBe(`head ${"*".repeat(value.length)} tail`);
});
