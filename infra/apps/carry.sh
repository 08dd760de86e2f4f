#!/bin/sh
# Copies programs with the libraries they are linked with into an otherwise empty root: carry.sh ROOT PROGRAM…
set -eu
root=$1
shift
for program in "$@"; do
  mkdir -p "$root/usr/local/bin"
  cp -L "$program" "$root/usr/local/bin/"
  # Lines look like `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -Lu "$library" "$root$library"
  done
done
