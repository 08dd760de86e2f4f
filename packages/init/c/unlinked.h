/* Space that no name leads to any more: deleted files that processes still hold open. */
#ifndef BERTH_UNLINKED_H
#define BERTH_UNLINKED_H

#include <stdint.h>
#include <sys/types.h>

/* Allocated bytes on `device`. Sees descriptors of processes this uid may look at; a file that is only mapped, or held by a
 * process that made itself undumpable, stays unseen. */
uint64_t unlinked_bytes(dev_t device);

#endif
