#ifndef BERTH_SECCOMP_H
#define BERTH_SECCOMP_H

#include <stdbool.h>

/* Takes calls away from this process and everything it starts, beyond what the engine's own profile does. Needs
 * no-new-privileges. False when the kernel or the runtime refuses the filter, or there is none for this architecture: HELLO_ACK
 * tells the worker, which does not use such a sandbox. */
bool seccomp_narrow(void);

#endif
