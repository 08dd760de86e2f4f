import { expect, test } from "vitest";
import { Progress } from "../src/progress.ts";

test("a character of stdout that is cut in two is whole in a job's progress, also around output of stderr", async () => {
  const sent: string[] = [];
  const progress = new Progress(async (_, message) => void sent.push(message));
  const [first = 0, ...rest] = Buffer.from("ü");
  progress.add("stdout", Buffer.of(first));
  progress.add("stderr", Buffer.from("oops\n"));
  progress.add("stdout", Buffer.from(rest));
  await progress.end();
  expect(sent.join("")).toBe("oops\nü");
});
