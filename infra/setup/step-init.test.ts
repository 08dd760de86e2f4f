import { cp, mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newContext } from "./context.mjs";
import { repoRoot } from "./places.mjs";
import { packagedInitStep } from "./step-init.mjs";

test("the npm package's init is built again when it is for another processor", async () => {
  const root = await mkdtemp(join(tmpdir(), "berth-init-"));
  try {
    const folder = join(root, "packages/init");
    await mkdir(folder, { recursive: true });
    for (const part of ["Makefile", "c", "build/init"])
      await cp(join(repoRoot, "packages/init", part), join(folder, part), { recursive: true });
    const context = newContext(root);
    expect(await packagedInitStep.find(context)).toMatchObject({ ready: true });
    // The field of the header that names the processor.
    const binary = await open(join(folder, "build/init"), "r+");
    await binary.write(Uint8Array.of(0xf3, 0), 0, 2, 18);
    await binary.close();
    expect(await packagedInitStep.find(context)).toMatchObject({ ready: false });
    await packagedInitStep.make(context, () => {});
    expect(await packagedInitStep.find(context)).toMatchObject({ ready: true });
  } finally {
    await rm(root, { recursive: true });
  }
});
