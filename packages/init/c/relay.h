/* The child that forwards connections; see forward.h. */
#ifndef BERTH_RELAY_H
#define BERTH_RELAY_H

#include <stdnoreturn.h>
#include <sys/un.h>

/* Takes connections from `listener`, and connects each to `worker`. Only its end ends it. */
noreturn void relay_run(int listener, const struct sockaddr_un *worker);

#endif
