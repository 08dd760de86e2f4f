/*
 * Reads process trees from /proc, and signals exactly their members.
 *
 * A scan is a table of every visible process. It is not a snapshot: processes fork and exit while /proc is read. So a caller that wants a
 * tree gone scans and kills until nothing is left. Only processes below a given root are signalled, and process groups only when no process
 * outside of that root can be in them.
 */
#ifndef BERTH_TREE_H
#define BERTH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* False when /proc is missing, or shows another pid namespace than ours. */
bool tree_open(void);

/* Reads /proc again, for at most that long. False when it could not be read to its end; the processes in the table do exist. */
bool tree_scan(uint64_t budget_us);

/* Descendants of `root` in the last scan that have a thread which has not exited, `root` itself not counted. */
size_t tree_count(pid_t root);

/* Whether `is` holds for a live descendant of `root` other than `except`. */
bool tree_has(pid_t root, pid_t except, bool (*is)(pid_t pid));

/* Sends `signal` to the live descendants of `root`; returns how many there were. `fresh` counts those that the scan
 * before did not have. SIGKILL goes to zombies and to whole groups too, which no fork can outrun. */
size_t tree_signal(pid_t root, int signal, size_t *fresh);

/* All processes of the last scan, other than this one, that have a thread which has not exited. */
size_t tree_others(void);

/* Kills children of this process that `known` does not know, and all below them. Returns how many live ones were found. */
size_t tree_kill_strays(bool (*known)(pid_t pid));

/* Stops, continues or kills every process of the namespace but this one. A stopped process cannot fork while it is scanned. All three use
 * kill(-1), and return false unless this is process 1 of its namespace. */
bool tree_freeze(void);
bool tree_thaw(void);
bool tree_kill_everything(void);

#endif
