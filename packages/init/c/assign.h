/*
 * Which sandbox this container serves: the first HELLO with a key says it, and the container serves no other in its life.
 *
 *   open    ──HELLO with a key──────────────────────────────────► bound ──HELLO with another, or with none──► spoiled
 *   waiting ──HELLO with a key, and a workspace is mounted──────► bound
 *      └──HELLO with a key, and none is, or it cannot be opened──► spoiled
 *
 * `waiting` is a container of the warm pool, started before its sandbox is known, with an empty directory in the workspace's place. The
 * worker mounts the workspace over that, and then says HELLO. Nothing starts while it waits, nor once it is spoiled. When its watchdog
 * fires while it waits, no worker can use it any more, and init exits.
 */
#ifndef BERTH_ASSIGN_H
#define BERTH_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

/* The container waits for its sandbox; `dir` is where the workspace will be. Returns an errno. */
int assign_later(const char *dir);

/* Of a HELLO; NULL when it had none. Returns an errno: 0 when the container may serve it. */
int assign_key(const uint8_t *key);

bool assign_waits(void);

/* Whether requests are refused because of it. */
bool assign_refuses(void);

/* The number of this mount namespace, by which the worker makes sure that it mounts into no other. 0: unknown. */
uint64_t assign_mount_namespace(void);

#endif
