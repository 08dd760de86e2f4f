/*
 * The worker's helper on the host: the same program, started as `init --mounter /WORKSPACES`, never inside a sandbox. It gives a
 * container of the warm pool its workspace, by mounting it in the container's own mount namespace.
 *
 * Each line of stdin is a request, each line of stdout its answer, in order: the request's first word, an errno, and the step that
 * failed (`-` for none). Words are separated by one space.
 *
 *   ID try                                        can this process do it, on this kernel and file system?
 *   ID open SLOT PID NAMESPACE                    remembers the mount namespace of a process, if it has that number
 *   ID mount SLOT FROM TO (ro|rw NAME TARGET)...  mounts directories beneath WORKSPACES; files of uid and gid FROM appear as TO's.
 *                                                 A slot is good for one `mount`, done or not
 *   ID close SLOT
 *
 * It ends with its stdin.
 */
#ifndef BERTH_MOUNTER_H
#define BERTH_MOUNTER_H

int mounter_run(const char *root);

#endif
