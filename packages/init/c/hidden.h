/* Commands whose open files cannot be listed. Files that they deleted and hold open could not be counted against the quota. So init ends
 * such commands, and their background children, when a measurement of the workspace finds one. */
#ifndef BERTH_HIDDEN_H
#define BERTH_HIDDEN_H

#include <stdint.h>

/* A measurement found such a process. Looks for all of them, and begins to end their commands. */
void hidden_suspected(uint64_t now);

#endif
