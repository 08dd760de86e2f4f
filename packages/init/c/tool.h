/*
 * What this program does when it is not process 1: `init clone`, `init clear` in a container of their own, as the tenant; `init volume`
 * on the host, for the worker. Words first, paths behind them. Each writes one line of JSON to stdout.
 */
#ifndef BERTH_TOOL_H
#define BERTH_TOOL_H

/* An exit code. */
int tool_main(int argc, char **argv);

/* Copies what is in one directory into another, which is empty. Links are copied, never followed. */
int clone_main(const char *from, const char *to);

/* Removes everything in a directory. */
int clear_main(const char *path);

/*
 * `create DIR`, `snapshot FROM TO`, `freeze FROM TO` (read-only) and `delete DIR` of btrfs subvolumes; `swap A B` exchanges the names
 * of two directories. Quotas: volume-quota.h.
 */
int volume_main(int argc, char **argv);

/* {"error":"ENOENT","path":"…"}; gives 1. */
int tool_failed(int error, const char *path);

#endif
