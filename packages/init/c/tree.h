/*
 * Who descends from whom, read from /proc, and signals to exactly those.
 *
 * A scan is a table of every process visible. It is not a snapshot: a process may fork or exit while it is read, so a
 * caller that wants a tree gone scans and kills until nothing is left. Only processes found below a given root are ever
 * signalled, and process groups only when no process outside that root can be in them.
 */
#ifndef BERTH_TREE_H
#define BERTH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* False when /proc is not there or shows another pid namespace than ours. */
bool tree_open(void);

/* Reads /proc anew. False when that is impossible now (no memory, no descriptor): the table is then empty. */
bool tree_scan(void);

/* Live (not zombie) descendants of `root` in the last scan, `root` itself not counted. */
size_t tree_count(pid_t root);

/* Sends `signal` to the live descendants of `root`; returns how many there were. `fresh` counts those that the scan
 * before did not have. With SIGKILL whole groups are taken too, which no fork can outrun. */
size_t tree_signal(pid_t root, int signal, size_t *fresh);

/* Kills children of this process that `known` does not know, and all below them. Returns how many live ones were found. */
size_t tree_kill_strays(bool (*known)(pid_t pid));

/* kill(-1): everything in the namespace but this process. Refused (false) unless this is process 1 of its namespace. */
bool tree_kill_everything(void);

#endif
