/* Idle keepers, kept for the next command. At most POOL_MAX; they count against the sandbox's pids limit. */
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

/* Takes a keeper that is through, and sets both to none. When there are enough, it is left where it is. */
void pool_give(pid_t *keeper, int *socket);

/* Has some ready before they are needed: one for a command, one for a file operation. At the next step, when HELLO is answered. */
void pool_warm_soon(void);
void pool_step(void);

bool pool_knows(pid_t pid);
void pool_reaped(pid_t pid);

#endif
