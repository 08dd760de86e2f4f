import { byteSize } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { hostImages } from "../host-images.ts";

const options = {} as const;
const progressEveryMs = 1_000;

export const imagePull = command({
  name: "image pull",
  summary: "pull an image to this machine, even if an older one has the same name",
  positionals: ["IMAGE"],
  about:
    "Workers pull what their profiles name when they start. Prints the name to pin it by: a profile with that name as `image` always gets\n" +
    "exactly this image, even if the tag moves.",
  examples: [{ line: "berth image pull python:3.13-slim", note: "" }],
  options,
  run,
});

async function run({ positionals }: Arguments<typeof options>, context: Context): Promise<number> {
  const [image = ""] = positionals;
  const { terminal, interrupts } = context;
  let printedMs = performance.now();
  const { id, pinned } = await (await hostImages(context)).ensure(image, {
    again: true,
    signal: interrupts.signal(),
    onPull: ({ doneBytes, totalBytes }) => {
      if (performance.now() - printedMs < progressEveryMs) return;
      printedMs = performance.now();
      terminal.note(`berth: ${image}: ${byteSize(doneBytes)} of ${byteSize(totalBytes)}`);
    },
  });
  await terminal.answer({ image, id, pinned }, () => pinned ?? id);
  return exitCodes.ok;
}
