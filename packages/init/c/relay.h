/* The child that forwards connections; see forward.h. */
#ifndef BERTH_RELAY_H
#define BERTH_RELAY_H

#include <stdnoreturn.h>
#include <sys/un.h>

/* Accepts connections from `listener`, and connects each to `worker`. Does not return. */
noreturn void relay_run(int listener, const struct sockaddr_un *worker);

#endif
