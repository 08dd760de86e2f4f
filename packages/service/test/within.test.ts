import { within } from "@berth/service";
import { expect, test } from "vitest";

test("a bounded wait gives the value, or undefined when it is late or fails", async () => {
  expect(await within(60_000, Promise.resolve(7))).toBe(7);
  expect(await within(60_000, Promise.reject(new Error("away")))).toBeUndefined();
  expect(await within(1, new Promise(() => {}))).toBeUndefined();
});
