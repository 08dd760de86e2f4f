import type { SandboxRecord } from "../port.ts";

/** What every container of ours says about itself. The engine keeps them over our own restarts. */
export const label = {
  fleet: "berth.fleet",
  sandboxKey: "berth.sandbox-key",
  worker: "berth.worker",
  epoch: "berth.epoch",
  config: "berth.config",
} as const;

export interface SandboxLabels {
  readonly fleet: string;
  readonly sandboxKey: string;
  readonly worker: string;
  readonly epoch: number;
  readonly config: string;
}

export function writeLabels(labels: SandboxLabels): Record<string, string> {
  return {
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

/** One name per sandbox: the engine itself then refuses a second container for it. */
export function containerName(fleet: string, key: string): string {
  return `berth-${fleet}-${key}`;
}
