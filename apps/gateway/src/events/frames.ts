import { isUtf8 } from "node:buffer";
import type { IdentifiedEvent } from "@berth/client";
import { redactedEvent, type ShownEvent } from "../jobs/redaction.ts";

type Frames = WeakMap<IdentifiedEvent, string>;

/** All listeners of a job share the event objects, so each event is serialised once. */
const made: Frames = new WeakMap();
const madeForTenants: Frames = new WeakMap();

/** Formats an event as `text/event-stream`. The data is one line of JSON, so nothing in it can pass for another field. */
export function frameOf(event: IdentifiedEvent): string {
  return once(made, event, () => event);
}

/** The same, without fields that tenants may not see. */
export function tenantFrameOf(event: IdentifiedEvent): string {
  return once(madeForTenants, event, () => redactedEvent(event));
}

function once(frames: Frames, event: IdentifiedEvent, shown: () => ShownEvent): string {
  const known = frames.get(event);
  if (known !== undefined) return known;
  const frame = `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(dataOf(shown()))}\n\n`;
  frames.set(event, frame);
  return frame;
}

/** Output as text if it is UTF-8, else as base64. If a chunk boundary splits a character, both chunks are base64. */
function dataOf(event: ShownEvent): Record<string, unknown> {
  if (event.type !== "stdout" && event.type !== "stderr") {
    const { id: _, ...data } = event;
    return data;
  }
  const { type, bytes } = event;
  return isUtf8(bytes)
    ? { type, text: bytes.toString(), encoding: "utf8" }
    : { type, text: bytes.toString("base64"), encoding: "base64" };
}
