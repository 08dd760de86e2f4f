/* Commands whose open files cannot be listed. Their deleted files could not be counted against the quota, so init ends
 * them, background children too, when a measurement of the workspace meets one. */
#ifndef BERTH_HIDDEN_H
#define BERTH_HIDDEN_H

#include <stdint.h>

/* A measurement found such a process. Looks for all of them, and begins to end the commands they belong to. */
void hidden_suspected(uint64_t now);

#endif
