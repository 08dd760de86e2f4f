/* Names the sources this program was built from; written by the Makefile. */
#ifndef BERTH_BUILD_ID_H
#define BERTH_BUILD_ID_H

extern const char build_id[];

#endif
