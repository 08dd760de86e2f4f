import { expect, test } from "vitest";
import { FilteredOutput } from "../src/output/filtered-output.ts";
import type { OutputFilter } from "../src/port.ts";

/** Holds back the last byte of each piece until it is asked for it. */
function holding(): OutputFilter {
  let held = Buffer.alloc(0);
  const all = () => {
    const part = { stream: "stdout" as const, bytes: held };
    held = Buffer.alloc(0);
    return part.bytes.length === 0 ? [] : [part];
  };
  return {
    push: (_stream, bytes) => {
      const whole = Buffer.concat([held, bytes]);
      held = Buffer.from(whole.subarray(-1));
      return [whole.subarray(0, -1)];
    },
    get isWaiting() {
      return held.length > 0;
    },
    release: all,
    end: all,
  };
}

test("what is held back comes after a pause, without more output", async () => {
  let seen = "";
  const output = new FilteredOutput(holding(), (_stream, bytes) => {
    seen += bytes;
  });
  await output.push("stdout", Buffer.from("name? "));
  expect(seen).toBe("name?");
  await expect.poll(() => seen).toBe("name? ");
  await output.push("stdout", Buffer.from("ab"));
  await output.end();
  expect(seen).toBe("name? ab");
});

test("the consumer has one piece at a time, and all of them in order", async () => {
  let seen = "";
  let inside = 0;
  const output = new FilteredOutput(holding(), async (_stream, bytes) => {
    expect(++inside).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    seen += bytes;
    inside--;
  });
  await Promise.all(["one", "two", "three"].map((text) => output.push("stdout", Buffer.from(text))));
  await output.end();
  expect(seen).toBe("onetwothree");
});

/** As the masking filter does: what it held, and then a view of what it was given. */
const views: OutputFilter = {
  push: (_stream, bytes) => [Buffer.from("held "), bytes],
  isWaiting: false,
  release: () => [],
  end: () => [],
};

test("a piece that waits for a slow consumer is what it was, though its bytes are overwritten meanwhile", async () => {
  let seen = "";
  const received = Buffer.from("mine ");
  const output = new FilteredOutput(views, async (_stream, bytes) => {
    await new Promise((resolve) => setImmediate(resolve));
    seen += bytes.toString("latin1");
  });
  const first = output.push("stdout", received);
  const second = output.push("stdout", received);
  received.fill("x");
  await Promise.all([first, second]);
  expect(seen.replaceAll("held ", "")).not.toContain("x");
});
