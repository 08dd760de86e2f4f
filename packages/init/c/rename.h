/* Renaming without replacing: one call where the kernel has it, a link and an unlink where it does not. */
#ifndef BERTH_RENAME_H
#define BERTH_RENAME_H

/* Returns an errno; EEXIST when the new name is taken. */
int rename_exclusive(int from_dir, const char *from, int to_dir, const char *to);

#endif
