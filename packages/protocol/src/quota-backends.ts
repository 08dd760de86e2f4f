/**
 * How a host bounds workspaces: by project quotas of ext4 or xfs, by quota groups of btrfs, by a file system of its own for each, or
 * by counting files again and again. `auto`: by what its file system has, else by counting.
 */
export const quotaBackends = ["auto", "walk", "project", "btrfs", "image"] as const;
export type QuotaBackend = (typeof quotaBackends)[number];
