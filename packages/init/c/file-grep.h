/* How much of a line is searched. */
#ifndef BERTH_FILE_GREP_H
#define BERTH_FILE_GREP_H

enum { GREP_LINE_MAX = 65536 };

#endif
