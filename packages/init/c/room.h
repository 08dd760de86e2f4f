/* How much one file operation may make the workspace grow, as its request says. A keeper runs one at a time. */
#ifndef BERTH_ROOM_H
#define BERTH_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "request.h"

void room_begin(const struct file_request *request);

/* False when there is no room left; then nothing is taken. */
bool room_take_entry(void);
/* Also for one that is made on the way to something. It takes a block of the disk, as most file systems have it. */
bool room_take_directory(void);
/* What replaces a file gives the old bytes back. */
bool room_take_bytes(uint64_t size, uint64_t given_back);

/* Says in DONE what was taken. */
void room_report(struct record_writer *done);

#endif
