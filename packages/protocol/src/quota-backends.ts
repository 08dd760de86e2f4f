/**
 * How a host bounds workspaces: project quotas of ext4 or xfs, quota groups of btrfs, a file system image per workspace, or periodic
 * counting. `auto` uses what the file system supports, else counting.
 */
export const quotaBackends = ["auto", "walk", "project", "btrfs", "image"] as const;
export type QuotaBackend = (typeof quotaBackends)[number];
