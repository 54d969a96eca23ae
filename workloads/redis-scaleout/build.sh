#!/bin/bash
# Nothing to compile: installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 servers.sh ready.sh point.sh stop.sh "$1"
