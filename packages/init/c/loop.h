/* The loop: one thread, no call in it blocks but poll. */
#ifndef BERTH_LOOP_H
#define BERTH_LOOP_H

/* Returns the exit code. */
int loop_run(int signals);

#endif
