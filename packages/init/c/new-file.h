/* Creates a file under a temporary name. Its caller renames it when it is complete. */
#ifndef BERTH_NEW_FILE_H
#define BERTH_NEW_FILE_H

enum { TEMPORARY_NAME = 32 };

/* Returns a descriptor, or -1 with errno. */
int create_temporary(int dir, char name[TEMPORARY_NAME]);

#endif
