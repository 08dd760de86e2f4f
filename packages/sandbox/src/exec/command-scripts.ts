/**
 * What runs inside the container for a command, in the words of a POSIX shell. Every script is constant: whatever comes from
 * outside arrives as a positional argument. Each begins by printing its process id on a line of its own, then one line that is
 * `ok …` or `no <code>`; see `AnswerHead`.
 */

/**
 * Process 1 of a container without init. It only waits, which also reaps what is orphaned to it. TERM is ignored, so that a tenant
 * cannot end the sandbox with it; the engine uses KILL.
 */
export const keepAliveCommand: readonly string[] = [
  "sh",
  "-c",
  "trap '' TERM INT HUP; while :; do sleep 86400 & wait; done",
];

/**
 * $1 directory beneath the workspace, $2 PATH to look the program up in, $3 program, $4 1 if it may write no file, then the
 * complete environment as NAME=value and the argument vector. No process is made before the program itself.
 */
export const commandScript = `
printf '%s\\n' "$$"
no() { printf 'no %s\\n' "$1"; exit 0; }
dir=/workspace/$1 path=$2 program=$3 full=$4
shift 4
unset CDPATH
if ! cd -P -- "$dir" 2>/dev/null; then
  [ -d "$dir" ] && no denied
  [ -e "$dir" ] && no not-a-directory
  no not-found
fi
case $PWD/ in /workspace/*) ;; *) no outside-workspace ;; esac
case $program in
  '') no command-not-found ;;
  */*)
    [ -e "$program" ] || no command-not-found
    [ -f "$program" ] && [ -x "$program" ] || no not-executable ;;
  *)
    found= denied=
    set -f
    IFS=:
    for entry in $path; do
      [ -f "\${entry:-.}/$program" ] || continue
      if [ -x "\${entry:-.}/$program" ]; then found=1; break; fi
      denied=1
    done
    [ -n "$found" ] || { [ -n "$denied" ] && no not-executable; no command-not-found; } ;;
esac
[ "$full" = 0 ] || ulimit -f 0 || no no-limits
printf 'ok\\n'
exec env -i -- "$@"
`;

/** For a program whose name `env` would take for an assignment or an option. */
export const indirection: readonly string[] = ["sh", "-c", 'exec "$@"', "sh"];

/** $1 signal, $2 process id of a session's leader. */
export const signalScript = `
printf '%s\\n' "$$"
kill "-$1" "-$2" 2>/dev/null
printf 'ok\\n'
`;

/**
 * Kills the session of $1 and says how many processes are left that belong to nobody known: not to process 1, not to this
 * script, not to the sessions in $2…. It looks until nothing changes under its eyes; what keeps forking for a hundred rounds counts.
 * A session's number cannot be forged: one is only ever inherited or one's own process id.
 */
export const sweepScript = `
printf '%s\\n' "$$"
target=$1
shift
known=" 1 $$ $* "
kill -KILL "-$target" 2>/dev/null
round=0
while :; do
  own=0 strays=0 vanished=0 self=
  for process in /proc/[0-9]*; do
    status=
    while IFS= read -r line; do status="$status $line"; done 2>/dev/null < "$process/stat"
    if [ -z "$status" ]; then vanished=$((vanished + 1)); continue; fi
    # The name before it may hold anything, even a closing parenthesis; the last one is the kernel's.
    set -- \${status##*) }
    [ "$process" = "/proc/$$" ] && self=$4
    # The main thread of a process may have exited (state Z) while others run: field 20 is the number of threads.
    [ "$1" = Z ] && [ "\${18}" -le 1 ] && continue
    if [ "$4" = "$target" ]; then
      own=$((own + 1))
      kill -KILL "\${process#/proc/}" 2>/dev/null
    else
      case $known in *" $4 "*) ;; *) strays=$((strays + 1)) ;; esac
    fi
  done
  round=$((round + 1))
  [ "$((own + vanished))" -eq 0 ] || [ "$round" -ge 100 ] && break
done
# A runtime that does not give each exec a session of its own makes the count worthless.
[ "$self" = "$$" ] || strays=$((strays + 1))
printf 'ok %s\\n' "$((own + vanished + strays))"
`;

/** Prints memory, its peak, cpu time, processes and out-of-memory kills; - for what the kernel does not tell. */
export const statsScript = `
printf '%s\\n' "$$"
value() { v=-; { read -r v < "$1"; } 2>/dev/null; printf ' %s' "\${v:--}"; }
key() {
  v=-
  { while read -r name number; do [ "$name" = "$2" ] && v=$number; done < "$1"; } 2>/dev/null
  printf ' %s' "$v"
}
cgroup=/sys/fs/cgroup
if [ -e $cgroup/cgroup.controllers ]; then
  printf 'ok 2'
  value $cgroup/memory.current
  value $cgroup/memory.peak
  key $cgroup/cpu.stat usage_usec
  value $cgroup/pids.current
  key $cgroup/memory.events oom_kill
else
  printf 'ok 1'
  value $cgroup/memory/memory.usage_in_bytes
  value $cgroup/memory/memory.max_usage_in_bytes
  value $cgroup/cpuacct/cpuacct.usage
  value $cgroup/pids/pids.current
  key $cgroup/memory/memory.oom_control oom_kill
fi
printf '\\n'
`;
