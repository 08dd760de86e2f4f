#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Half of a short command's time is compiling. In the user's own directory: files in a shared one could come from another user.
try {
  enableCompileCache(join(homedir(), ".cache", "berth"));
} catch {
  // Without HOME, a user whom no passwd entry names has no directory. It works without the cache.
}

const { berth } = await import("./berth.ts");
process.exitCode = await berth(process.argv.slice(2));
