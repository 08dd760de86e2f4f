/* The loop: one thread, in which only poll blocks. */
#ifndef BERTH_LOOP_H
#define BERTH_LOOP_H

/* Returns the exit code. */
int loop_run(int signals);

#endif
