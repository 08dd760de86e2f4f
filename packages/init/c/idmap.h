/* A user namespace that only maps one uid and gid on the disk to the one that processes have. */
#ifndef BERTH_IDMAP_H
#define BERTH_IDMAP_H

#include <sys/types.h>

/* Returns a descriptor, or -1 with errno. */
int idmap_open(uid_t on_disk, uid_t inside);

#endif
