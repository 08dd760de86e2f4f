/* Trees of files for the fuzzers, and what is in one, as text that two trees can be compared by. */
#ifndef BERTH_FUZZ_TREE_H
#define BERTH_FUZZ_TREE_H

#include <stdint.h>

struct tree_facts {
    char *text; /* a line for each entry, by name: all that a copy must keep. To be freed */
    uint64_t entries, bytes, allocated;
    uint64_t set_id; /* entries with a set-uid or set-gid bit */
    uint64_t temporary; /* names of files that are still being written */
};

/* What is in a directory. Reads what its owner has no permission for, too, and leaves all permissions as they were. Sockets are left out.
 * Ends the process when it cannot. */
struct tree_facts tree_facts_of(const char *dir);

/* Makes a hostile tenant's tree. `outside` is where links lead that lead out of it. */
void tree_grow(const char *dir, const char *outside);

#endif
