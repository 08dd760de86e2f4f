import { byteSize } from "@berth/protocol";
import { type Arguments, command } from "../command.ts";
import type { Context } from "../context.ts";
import { exitCodes } from "../exit-codes.ts";
import { hostImages } from "../host-images.ts";
import { spanText } from "../terminal/quantities.ts";
import { table } from "../terminal/table.ts";

const options = {} as const;

export const imageLs = command({
  name: "image ls",
  summary: "list the images that sandboxes of this machine were made of",
  positionals: [],
  about: "PIN is a name that always means exactly this image; a profile may have it as `image`.",
  examples: [{ line: "berth image ls", note: "" }],
  options,
  run,
});

async function run(_: Arguments<typeof options>, context: Context): Promise<number> {
  const images = await (await hostImages(context)).list();
  const now = Date.now();
  await context.terminal.answer({ images }, () =>
    images.length === 0
      ? "no sandbox was made here yet"
      : table(
          ["IMAGE", "SIZE", "USED", "BY BERTH", "PIN"],
          images.map(({ image, bytes, usedAtMs, pulled, pinned }) => [
            ...[image, bytes === undefined ? "gone" : byteSize(bytes), `${spanText(now - usedAtMs)} ago`],
            ...[pulled ? "pulled" : "-", pinned ?? "-"],
          ]),
        ),
  );
  return exitCodes.ok;
}
