#ifndef BERTH_SECCOMP_H
#define BERTH_SECCOMP_H

/* Takes calls away from this process and everything it starts, beyond what the engine's own profile does. Needs
 * no-new-privileges. Where the kernel or the runtime has no filters, the engine's profile is all there is. */
void seccomp_narrow(void);

#endif
