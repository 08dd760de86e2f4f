import { expect, test } from "vitest";
import { serverEvents } from "../src/door/sse.ts";

async function eventsOf(...chunks: (string | Uint8Array)[]) {
  async function* body() {
    for (const chunk of chunks) yield Buffer.from(chunk as string);
  }
  const events = [];
  for await (const event of serverEvents(body())) events.push(event);
  return events;
}

test("events are read whatever pieces they come in, characters that are cut in two included", async () => {
  const text = Buffer.from(
    'retry: 1000\n\nid: 1-0\nevent: stdout\ndata: {"text":"né"}\n\n: beat\n\nid: 2-0\nevent: finished\ndata: {}\n\n',
  );
  const whole = [
    { id: "1-0", type: "stdout", data: '{"text":"né"}' },
    { id: "2-0", type: "finished", data: "{}" },
  ];
  expect(await eventsOf(text)).toEqual(whole);
  expect(await eventsOf(...Array.from(text, (byte) => Uint8Array.of(byte)))).toEqual(whole);
});

test("an event that is cut off is left out, so that it is asked for again", async () => {
  expect(await eventsOf("id: 1-0\nevent: stdout\ndata: {}\n\nid: 2-0\nevent: stdout\nda")).toHaveLength(1);
});

test("several lines of data are one, and carriage returns are no part of it", async () => {
  expect(await eventsOf("data: a\r\ndata: b\r\n\r\n")).toEqual([{ id: "", type: "message", data: "a\nb" }]);
});
