import type { Config } from "./config.ts";
import type { Door } from "./door.ts";
import type { Interrupts } from "./interrupts.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** What a command has besides its arguments. */
export interface Context {
  readonly config: Config;
  readonly terminal: Terminal;
  readonly interrupts: Interrupts;
  /** What paths on the command line are relative to. */
  readonly directory: string;
  /** The fleet; reached when first asked for, closed by the runner of the command. */
  readonly door: () => Promise<Door>;
}
