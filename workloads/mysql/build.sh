#!/bin/bash
# Nothing to compile: installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 644 common.sh options.sh "$1"
install -m 755 data.sh prepare.sh server.sh ready.sh stop.sh fill.sh point.sh finish.sh "$1"

# Only in the image, never where someone tries this script: the package made a database of its own, which is another
# in every build, and a virtual machine would start a server with it beside all that is measured.
if [ "$1" = /opt/strata/workloads/mysql ]; then
    ln -sf /dev/null /etc/systemd/system/mariadb.service
    rm -rf /var/lib/mysql/*
fi
