import { isUtf8 } from "node:buffer";
import type { IdentifiedEvent } from "@berth/client";

/** Listeners of one job are given the same objects: each is put into words once, whoever many listen. */
const made = new WeakMap<IdentifiedEvent, string>();

/** An event as `text/event-stream` has it. The data is one line of JSON, so nothing in it can look like another field. */
export function frameOf(event: IdentifiedEvent): string {
  const known = made.get(event);
  if (known !== undefined) return known;
  const frame = `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(dataOf(event))}\n\n`;
  made.set(event, frame);
  return frame;
}

/** Bytes as text where they are text. A character that was cut in two by the chunking comes as base64, both halves. */
function dataOf(event: IdentifiedEvent): Record<string, unknown> {
  if (event.type !== "stdout" && event.type !== "stderr") {
    const { id: _, ...data } = event;
    return data;
  }
  const { type, bytes } = event;
  return isUtf8(bytes)
    ? { type, text: bytes.toString(), encoding: "utf8" }
    : { type, text: bytes.toString("base64"), encoding: "base64" };
}
