#!/bin/sh
# The last touches, run as root inside the new file system by both ways of building it, so that they cannot drift apart.
# It leaves /tmp alone: mmdebstrap keeps the apt settings of its later steps there, and without them its clean-up
# would empty the package lists of the host instead.
set -eu

# For people who run the image by hand. Berth gives each tenant a uid of its own, which needs no entry in /etc/passwd.
useradd --uid 1000 --user-group --home-dir /workspace --no-create-home --shell /bin/bash sandbox
install -d -o sandbox -g sandbox -m 0755 /workspace

# A mirror's password in its address belongs to the builder of the image, not to every tenant.
find /etc/apt -type f \( -name '*.list' -o -name '*.sources' \) -exec sed -i 's#://[^/@ ]*@#://#g' '{}' +
