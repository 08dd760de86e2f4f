/**
 * File operations in the words of a POSIX shell, for busybox and Debian alike. Constant, as in command-scripts.ts: a path is never
 * part of a script. Names are given to tools as `./name`, so that none is taken for an option.
 */

/**
 * `enter DIR MAKE` goes to a directory beneath the workspace, name by name; `follow` resolves $name where it is a symlink. Both
 * refuse what leads out. Between such a look and its use a tenant's process may swap a directory for a symlink:
 * the operation then happens elsewhere in the container, as the tenant, where the tenant's own commands reach as well.
 */
export const pathFunctions = `
printf '%s\\n' "$$"
unset CDPATH
no() { printf 'no %s\\n' "$1"; exit 0; }
inside() { case $PWD/ in /workspace/*) ;; *) no outside-workspace ;; esac; }
follow() {
  hops=0
  while [ -L "$name" ]; do
    hops=$((hops + 1))
    [ "$hops" -le 40 ] || no too-many-links
    target=$(readlink -n -- "$name" && printf x) || no io
    target=\${target%x}
    case $target in
      /workspace | /workspace/*) ;;
      /*) no outside-workspace ;;
    esac
    while :; do case $target in ?*/) target=\${target%/} ;; *) break ;; esac; done
    last=\${target##*/}
    case $last in
      '' | . | ..) place=$target name=. ;;
      *) place=\${target%"$last"} name=./$last ;;
    esac
    [ -z "$place" ] || cd -P -- "$place" 2>/dev/null || no not-found
    inside
  done
}
missing() {
  [ -d "$1" ] && no denied
  if [ -L "$1" ]; then name=$1; follow; set -- "$name" 0; fi
  [ -e "$1" ] && no not-a-directory
  [ "$2" = 1 ] || no not-found
  [ -w . ] || no denied
  (umask 022; mkdir -- "$1") || [ -d "$1" ] || no io
  cd -P -- "$1" 2>/dev/null || no denied
}
enter() {
  cd -P -- /workspace 2>/dev/null || no denied
  rest=$1
  while [ -n "$rest" ]; do
    case $rest in
      */*) part=./\${rest%%/*} rest=\${rest#*/} ;;
      *) part=./$rest rest= ;;
    esac
    cd -P -- "$part" 2>/dev/null || missing "$part" "$2"
    inside
  done
}
regular() {
  [ -d "$name" ] && no is-a-directory
  [ -e "$name" ] || no not-found
  [ -f "$name" ] || no not-a-file
}
`;

/** $1 parent, $2 name, $3 offset, $4 length or nothing, $5 1 if the path ended in a slash. */
export const readScript = `${pathFunctions}
enter "$1" 0
name=$2
follow
regular
[ "$5" = 1 ] && no not-a-directory
[ -r "$name" ] || no denied
exec 3< "$name"
facts=$(stat -L -c '%f %s %Y' /proc/self/fd/3) || no io
size=\${facts#* }
size=\${size% *}
left=$((size - $3))
[ "$left" -gt 0 ] || left=0
[ -z "$4" ] || [ "$4" -ge "$left" ] || left=$4
printf 'ok %s %s\\n' "$left" "$facts"
[ "$left" -gt 0 ] || exit 0
if [ "$3" -eq 0 ]; then head -c "$left" <&3; else tail -c "+$(($3 + 1))" <&3 | head -c "$left"; fi
`;

/**
 * $1 parent, $2 name, $3 temporary name, $4 size, $5 mode or nothing, $6 append, $7 make parents, $8 must not exist,
 * $9 sha256 of what is there or nothing, $10 bytes the file may grow by. The content comes on stdin.
 */
export const writeScript = `${pathFunctions}
enter "$1" "$7"
name=$2 temporary=$3 size=$4 append=$6 exclusive=$8 want=$9
mode=644 old=0 created=1
follow
if [ -e "$name" ]; then
  regular
  [ "$exclusive" = 1 ] && no exists
  facts=$(stat -c '%s %a' -- "$name") || no io
  old=\${facts% *} mode=\${facts#* } created=0
fi
[ -z "$5" ] || mode=$5
kept=$old
[ "$append" = 1 ] && kept=0
[ "$((size - kept))" -le "\${10}" ] || no quota
give_up() { rm -f -- "$temporary"; no "$1"; }
match() {
  [ -n "$want" ] || return 0
  [ -f "$name" ] || give_up mismatch
  command -v sha256sum > /dev/null 2>&1 || give_up no-sha256sum
  sum=$(sha256sum < "$name") || give_up io
  [ "\${sum%% *}" = "$want" ] || give_up mismatch
}
match
if [ "$append" = 1 ]; then
  [ "$created" = 1 ] || [ -w "$name" ] || no denied
  umask 077
  cat >> "$name" || no io
  { [ "$created" = 0 ] && [ -z "$5" ]; } || chmod -- "$mode" "$name" || no io
  size=$(stat -c %s -- "$name") || no io
  printf 'ok %s %s\\n' "$size" "$created"
  exit 0
fi
[ -w . ] || no denied
(umask 077; set -C; cat > "$temporary") || give_up io
got=$(stat -c %s -- "$temporary") || give_up io
[ "$got" = "$size" ] || give_up short
chmod -- "$mode" "$temporary" || give_up io
match
if [ "$exclusive" = 1 ]; then
  ln -- "$temporary" "$name" 2>/dev/null || { [ -e "$name" ] && give_up exists; give_up io; }
  rm -f -- "$temporary"
else
  mv -f -- "$temporary" "$name" || give_up io
fi
printf 'ok %s %s\\n' "$size" "$created"
`;

/** $1 parent, $2 name, $3 follow, $4 hash, $5 1 if the path ended in a slash. A symlink's target comes after the answer. */
export const statScript = `${pathFunctions}
enter "$1" 0
name=$2
[ "$3" = 1 ] && follow
[ -e "$name" ] || [ -L "$name" ] || no not-found
[ "$5" = 0 ] || [ -d "$name" ] || no not-a-directory
facts=$(stat -c '%f %s %Y' -- "$name") || no denied
sum=-
if [ "$4" = 1 ] && [ -f "$name" ] && ! [ -L "$name" ]; then
  command -v sha256sum > /dev/null 2>&1 || no no-sha256sum
  [ -r "$name" ] || no denied
  sum=$(sha256sum < "$name") || no io
fi
printf 'ok %s %s\\n' "$facts" "\${sum%% *}"
[ -L "$name" ] && readlink -n -- "$name"
`;

/** $1 parent, $2 name, $3 recursive, $4 missing is fine. Counts before it removes. */
export const removeScript = `${pathFunctions}
if [ "$4" = 1 ]; then
  absent() { [ "$1" = not-found ] && { printf 'ok 0\\n'; exit 0; }; printf 'no %s\\n' "$1"; exit 0; }
  no() { absent "$1"; }
fi
enter "$1" 0
name=$2
[ -e "$name" ] || [ -L "$name" ] || no not-found
[ -w . ] || no denied
count=1
if [ -d "$name" ] && ! [ -L "$name" ]; then
  if [ "$3" = 1 ]; then
    count=0
    for batch in $(find "$name" -exec sh -c 'printf "%s\\n" "$#"' sh {} + 2>/dev/null); do count=$((count + batch)); done
    rm -rf -- "$name" || no io
  else
    rmdir -- "$name" 2>/dev/null || { [ -n "$(ls -A -- "$name" 2>/dev/null | head -c 1)" ] && no not-empty; no denied; }
  fi
else
  rm -f -- "$name" || no io
fi
printf 'ok %s\\n' "$count"
`;

/** $1 parent, $2 name, $3 new parent, $4 new name, $5 overwrite, $6 make parents. */
export const moveScript = `${pathFunctions}
enter "$1" 0
[ -e "$2" ] || [ -L "$2" ] || no not-found
[ -w . ] || no denied
from=$PWD/\${2#./}
directory=0
[ -d "$2" ] && ! [ -L "$2" ] && directory=1
enter "$3" "$6"
name=$4
to=$PWD/\${name#./}
[ "$from" = "$to" ] && { printf 'ok\\n'; exit 0; }
case $to/ in "$from"/*) no invalid-path ;; esac
[ -w . ] || no denied
if [ -e "$name" ] || [ -L "$name" ]; then
  [ "$5" = 1 ] || no exists
  if [ -d "$name" ] && ! [ -L "$name" ]; then
    [ "$directory" = 1 ] || no is-a-directory
    rmdir -- "$name" 2>/dev/null || no not-empty
  elif [ "$directory" = 1 ]; then
    no not-a-directory
  fi
fi
mv -f -- "$from" "$name" || no io
printf 'ok\\n'
`;

/** $1 parent, $2 name, $3 make parents and accept what exists, $4 mode or nothing. */
export const makeDirectoryScript = `${pathFunctions}
enter "$1" "$3"
name=$2
created=0
if [ -d "$name" ]; then
  [ "$3" = 1 ] || no exists
  cd -P -- "$name" 2>/dev/null || no denied
  inside
else
  [ "$3" = 1 ] && follow
  if [ -e "$name" ] || [ -L "$name" ]; then no exists; fi
  [ -w . ] || no denied
  (umask 022; mkdir -- "$name") || no io
  [ -z "$4" ] || chmod -- "$4" "$name" || no io
  created=1
fi
printf 'ok %s\\n' "$created"
`;
