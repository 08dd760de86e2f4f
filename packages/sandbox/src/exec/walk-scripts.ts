import { pathFunctions } from "./file-scripts.ts";

/** Operations over many files. Names may hold any byte but NUL, so everything is apart by NUL; see `WalkReader`. */

/**
 * One batch of names: the names, nothing, one line of facts for each, then the symlinks among them with their place in the
 * batch, nothing. A name that vanished has - for its facts.
 */
export const entryBatchScript = `
facts=$(stat -c '%f %s %Y' -- "$@" 2>/dev/null) || {
  facts=
  for entry; do
    one=$(stat -c '%f %s %Y' -- "$entry" 2>/dev/null) || one=-
    facts="$facts$one
"
  done
}
printf '%s\\0' "$@"
printf '\\0%s\\0' "$facts"
place=0
for entry; do
  if [ -L "$entry" ]; then
    printf '%s ' "$place"
    readlink -n -- "$entry"
    printf '\\0'
  fi
  place=$((place + 1))
done
printf '\\0'
`;

/** $1 directory, $2 depth, $3 the batch script. */
export const listScript = `${pathFunctions}
enter "$1" 0
[ -r . ] || no denied
printf 'ok\\n'
find . -mindepth 1 -maxdepth "$2" -exec sh -c "$3" sh {} + 2>/dev/null
printf 'end\\0'
`;

/** $1 parent, $2 name. What it is and where, beneath the workspace; then the regular files there. */
export const regularFilesScript = `${pathFunctions}
enter "$1" 0
name=$2
follow
[ -e "$name" ] || no not-found
if [ -d "$name" ]; then
  cd -P -- "$name" 2>/dev/null || no denied
  inside
  [ -r . ] || no denied
  printf 'ok\\ndirectory\\0%s\\0' "\${PWD#/workspace}"
  find . -type f -exec sh -c 'printf "%s\\0" "$@"' sh {} + 2>/dev/null
else
  [ -f "$name" ] || no not-a-file
  [ -r "$name" ] || no denied
  printf 'ok\\nfile\\0%s\\0%s\\0' "\${PWD#/workspace}" "$name"
fi
printf 'end\\0'
`;

/** $1 grep's option, $2 matches wanted of one file, $3 bytes of a line, $4 pattern, then names without line feeds. */
export const grepBatchScript = `
how=$1 most=$2 wide=$3 what=$4
shift 4
grep -l "$how" -e "$what" -- "$@" 2>/dev/null | while IFS= read -r file; do
  [ -f "$file" ] && ! [ -L "$file" ] || continue
  if [ $(tr -dc '\\000' < "$file" | head -c 1 | wc -c) -ne 0 ]; then
    printf 'binary %s\\0' "$file"
    continue
  fi
  printf 'file %s\\0' "$file"
  grep -n -h "$how" -m "$most" -e "$what" -- "$file" 2>/dev/null | cut -b "1-$wide"
  printf '\\0'
done
exit 0
`;

/** $1 directory, $2 the batch script, $3… its first arguments; the names come on stdin. */
export const grepScript = `${pathFunctions}
enter "$1" 0
batch=$2 how=$3 what=$6
printf '\\n' | grep "$how" -e "$what" > /dev/null 2>&1
[ $? -le 1 ] || no bad-pattern
printf 'ok\\n'
xargs -0 sh -c "$batch" sh "$3" "$4" "$5" "$6"
printf 'end\\0'
`;

/** Kilobytes and device of the workspace; then counts of entries; then links, blocks, device and inode of open deleted files. */
export const usageScript = `${pathFunctions}
enter '' 0
kilobytes=$(du -sk . 2>/dev/null)
device=$(stat -c %d .) || no io
printf 'ok %s %s\\n' "\${kilobytes%%[!0-9]*}" "$device"
find . -mindepth 1 -exec sh -c 'printf "%s\\0" "$#"' sh {} + 2>/dev/null
printf 'open\\0'
find /proc/[0-9]*/fd -type l -exec stat -L -c '%h %b %d %i' -- {} + 2>/dev/null | grep '^0 ' | tr '\\n' '\\000'
printf 'end\\0'
`;
