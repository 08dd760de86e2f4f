/*
 * Whom the kernel takes first when the sandbox runs out of memory: commands, not init.
 *
 * The score is inherited, and a process may go back to the score it began with. So init raises its own around the fork of a
 * keeper, and a command starts with the higher one without any work of its own. A keeper is far smaller than any command.
 */
#ifndef BERTH_OOM_H
#define BERTH_OOM_H

/* Before the process becomes undumpable: after that the file belongs to root. Best effort, as is the rest. */
void oom_open(void);
void oom_raise(void);
void oom_restore(void);

#endif
