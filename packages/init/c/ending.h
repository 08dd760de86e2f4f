/*
 * Ending a command's tree, in small steps of the loop.
 *
 *   TERM (all descendants, once) ──graceMs──► KILL (scan and kill, every few ms) ──► gone
 *                                              │ 0.25 s and still new processes: the sandbox is stopped for each scan
 *                                              │ 1 s and still new processes: everything in the sandbox is killed
 *                                              └ 2 s: given up, the rest is counted as stuck
 *
 * Stopping and killing everything are for process 1 only. A scan that takes too long, because a swarm leaves init no
 * processor, is repeated at once with the sandbox stopped.
 *
 * The keeper proves that its tree is gone: its wait() fails with ECHILD. A killed keeper leaves strays, which init inherits and kills until
 * a scan finds none. A stopped keeper gets CONT, and KILL when its tree is gone but it does not report that.
 */
#ifndef BERTH_ENDING_H
#define BERTH_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "channel.h"

/* A repeated call can only make the end come sooner. The first reason stays. */
void ending_begin(struct channel *channel, enum exit_reason reason, uint64_t grace_ms, uint64_t now);

/* Begins to end every command, and its background children. */
void ending_all(enum exit_reason reason, uint64_t grace_ms, uint64_t now);
/* The same without grace, and kills every other process in the sandbox. */
void ending_kill_sandbox(enum exit_reason reason, uint64_t now);

/* There may be strays: looks for them at the next step. */
void ending_strays_suspected(uint64_t now);

/* Does what is due. Channels whose tree is found gone are answered when they are next served. */
void ending_step(uint64_t now);
uint64_t ending_due(void);

#endif
