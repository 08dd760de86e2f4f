/* A file that takes its name only when it is whole. */
#ifndef BERTH_NEW_FILE_H
#define BERTH_NEW_FILE_H

enum { TEMPORARY_NAME = 32 };

/* -1 with errno. */
int create_temporary(int dir, char name[TEMPORARY_NAME]);

#endif
