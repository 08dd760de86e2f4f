#!/bin/sh
# What both images have beneath their app: Node with its libraries, two users, and folders for volumes. rootfs.sh ROOT
set -eu
root=$1
sh infra/apps/carry.sh "$root" "$(command -v node)"
mkdir -p "$root/etc" "$root/tmp" "$root/var/lib/berth/gateway" "$root/var/lib/berth/artifacts"
printf 'root:x:0:0:root:/:/\nberth:x:10001:10001:berth:/:/\n' > "$root/etc/passwd"
printf 'root:x:0:\nberth:x:10001:\n' > "$root/etc/group"
chmod 1777 "$root/tmp"
chown 10001:10001 "$root/var/lib/berth/gateway"
chmod 700 "$root/var/lib/berth/gateway"
# What workers put there gets the folder's group, which is the gateway's, under any user of the workers.
chown 0:10001 "$root/var/lib/berth/artifacts"
chmod 2770 "$root/var/lib/berth/artifacts"
