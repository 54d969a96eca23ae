#!/bin/bash
# Nothing to compile: installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/mariadb.sh
install -m 644 common.sh options.sh report.lua "$1"
install -m 755 data.sh prepare.sh server.sh ready.sh fill.sh point.sh finish.sh "$1"
