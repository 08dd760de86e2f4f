/*
 * Which sandbox this container serves: the one that the first HELLO with a key names. The container serves no other in its life.
 *
 *   open    ──HELLO with a key──────────────────────────────────► bound ──HELLO with another, or with none──► spoiled
 *   waiting ──HELLO with a key, and a workspace is mounted──────► bound
 *      └──HELLO with a key, and none is, or it cannot be opened──► spoiled
 *
 * `waiting` is a container of the warm pool, started before its sandbox is known, with an empty directory in the workspace's place. The
 * worker mounts the workspace over that, and then sends HELLO. Nothing starts while it waits, nor once it is spoiled. When its watchdog
 * fires while it waits, no worker can use it any more, and init exits.
 */
#ifndef BERTH_ASSIGN_H
#define BERTH_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

/* The container waits for its sandbox; `dir` is where the workspace will be. Returns an errno. */
int assign_later(const char *dir);

/* Takes the key of a HELLO, NULL when it had none. Returns an errno; 0: the container may serve that sandbox. */
int assign_key(const uint8_t *key);

bool assign_waits(void);

/* Whether init refuses requests, because it waits for its sandbox or is spoiled. */
bool assign_refuses(void);

/* The number of this mount namespace, by which the worker makes sure that it mounts into no other. 0: unknown. */
uint64_t assign_mount_namespace(void);

#endif
