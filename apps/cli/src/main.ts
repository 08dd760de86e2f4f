#!/usr/bin/env node
import { berth } from "./berth.ts";

process.exitCode = await berth(process.argv.slice(2));
