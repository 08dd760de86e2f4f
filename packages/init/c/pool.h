/* Idle keepers, at most POOL_MAX, for the next requests. They count against the sandbox's pids limit. */
#ifndef BERTH_POOL_H
#define BERTH_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper.h"

enum { POOL_MAX = 8, POOL_WARM = 2 };

/* Gives the order to an idle keeper, or to a new one. Returns an errno. The order's descriptors stay the caller's. */
int pool_start(const struct order *order, pid_t *keeper, int *socket);

/* Takes a keeper that is done, and sets both to none. Does nothing when there are enough. */
void pool_give(pid_t *keeper, int *socket);

/* Forks keepers at the next step, after HELLO was answered: one for a command, one for a file operation. */
void pool_warm_soon(void);
void pool_step(void);

bool pool_knows(pid_t pid);
void pool_reaped(pid_t pid);

#endif
