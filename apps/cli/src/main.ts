#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

// Half of a short command's time is compiling. In the user's own directory: what is read from a shared one could be anybody's.
enableCompileCache(join(homedir(), ".cache", "berth"));

const { berth } = await import("./berth.ts");
process.exitCode = await berth(process.argv.slice(2));
