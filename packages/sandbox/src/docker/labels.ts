import type { SandboxRecord } from "../port.ts";

/** The labels of Berth's containers. The engine keeps them over restarts of a worker. */
export const label = {
  fleet: "berth.fleet",
  sandboxKey: "berth.sandbox-key",
  worker: "berth.worker",
  epoch: "berth.epoch",
  config: "berth.config",
  /** On a container of the warm pool: which workers may use it, and its number among those of its worker. */
  warm: "berth.warm",
} as const;

export interface SandboxLabels {
  readonly fleet: string;
  readonly sandboxKey: string;
  readonly worker: string;
  readonly epoch: number;
  readonly config: string;
}

/** All of them: a container has its image's labels, too, where it has none of its own. */
export function writeLabels(labels: SandboxLabels): Record<string, string> {
  return {
    [label.warm]: "",
    [label.fleet]: labels.fleet,
    [label.sandboxKey]: labels.sandboxKey,
    [label.worker]: labels.worker,
    [label.epoch]: String(labels.epoch),
    [label.config]: labels.config,
  };
}

export function readRecord(id: string, labels: Record<string, string>, state: string): SandboxRecord {
  const epoch = Number(labels[label.epoch]);
  return {
    id,
    key: labels[label.sandboxKey] ?? "",
    worker: labels[label.worker] ?? "",
    epoch: Number.isSafeInteger(epoch) ? epoch : 0,
    state,
  };
}

/** Marks a container of the warm pool. It keeps the label when it serves a sandbox. */
export function warmLabel(scope: string, number: number): Record<string, string> {
  return { [label.warm]: `${scope}.${number}` };
}

export function readWarmLabel(text = ""): { readonly scope: string; readonly number: number } {
  const [, scope = "", number = "-1"] = /^([0-9a-f]+)\.(\d{1,6})$/.exec(text) ?? [];
  return { scope, number: Number(number) };
}

/** One name per sandbox: the engine refuses a second container of the same name. */
export function containerName(fleet: string, key: string): string {
  return `berth-${fleet}-${key}`;
}
