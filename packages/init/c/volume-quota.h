#ifndef VOLUME_QUOTA_H
#define VOLUME_QUOTA_H

/*
 * Words: project DIR | project-set DIR NUMBER | project-try DIR DEVICE | project-limit DIR DEVICE NUMBER KIBIBYTES FILES |
 * groups DIR | groups-on DIR | group-limit DIR BYTES. Writes its result or its error as JSON to stdout.
 */
int volume_quota_main(int argc, char **argv);

#endif
