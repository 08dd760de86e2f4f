#ifndef BERTH_SECCOMP_H
#define BERTH_SECCOMP_H

#include <stdbool.h>

/* Installs a seccomp filter for this process and all of its children, in addition to the engine's profile. Needs no-new-privileges. False
 * when the kernel or the runtime refuses the filter, or there is none for this architecture. HELLO_ACK reports that to the worker, which
 * does not use such a sandbox. */
bool seccomp_narrow(void);

#endif
