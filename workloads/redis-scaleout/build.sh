#!/bin/bash
# Installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/supervise.sh
install -m 644 ../kit/load/report.py "$1"
install -m 755 servers.sh ready.sh point.py "$1"
