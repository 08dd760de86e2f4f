/*
 * The worker's helper on the host: the same program, started as `init --mounter /WORKSPACES`, never inside a sandbox. It gives a
 * container of the warm pool its workspace, by mounting it in the container's own mount namespace.
 *
 * Each line of stdin is a request. Each line of stdout is its answer, in order: the request's id, an errno, and the step that failed (`-` for
 * none). Words are separated by one space.
 *
 *   ID try                                        can this process do it, on this kernel and file system?
 *   ID open SLOT PID NAMESPACE                    keeps the mount namespace of a process open, if it has that number
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
