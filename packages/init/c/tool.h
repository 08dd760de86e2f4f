/*
 * The program's tools: `init clone` and `init clear` run in a container of their own, as the tenant; `init volume` runs on the host, for the
 * worker. The call's words come first, then its paths. Each writes one line of JSON to stdout.
 */
#ifndef BERTH_TOOL_H
#define BERTH_TOOL_H

/* Returns an exit code. */
int tool_main(int argc, char **argv);

/* Copies a directory's content into another directory, which is empty. Copies links, and never follows them. */
int clone_main(const char *from, const char *to);

/* Removes everything in a directory. */
int clear_main(const char *path);

/*
 * `create DIR`, `snapshot FROM TO`, `freeze FROM TO` (read-only) and `delete DIR` of btrfs subvolumes; `swap A B` exchanges the names
 * of two directories. Quotas: volume-quota.h.
 */
int volume_main(int argc, char **argv);

/* Writes {"error":"not-found","detail":"…","path":"…"} and returns 1. */
int tool_failed(int error, const char *path);

#endif
