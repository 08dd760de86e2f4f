import type { Config } from "./config.ts";
import type { Door } from "./door.ts";
import type { Interrupts } from "./interrupts.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** What a command gets besides its arguments. */
export interface Context {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly interrupts: Interrupts;
  /** Base of relative paths on the command line. */
  readonly directory: string;
  /** Connects to the fleet on first use. The command runner closes it. */
  readonly door: () => Promise<Door>;
}
