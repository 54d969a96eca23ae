#!/bin/bash
# Nothing to compile: installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 644 common.sh options.sh "$1"
install -m 755 data.sh prepare.sh server.sh ready.sh stop.sh fill.sh point.sh finish.sh "$1"
