/*
 * Makes the kernel kill commands rather than init when the sandbox runs out of memory.
 *
 * Children inherit the score, and a process may go back to the score that it began with. So init raises its own score around the fork of a
 * keeper, whose commands inherit the raised one. The keeper has it too, but is far smaller than any command.
 */
#ifndef BERTH_OOM_H
#define BERTH_OOM_H

/* Call before the process becomes undumpable: after that, /proc/self/oom_score_adj belongs to root. Errors are ignored here and below. */
void oom_open(void);
void oom_raise(void);
void oom_restore(void);

#endif
