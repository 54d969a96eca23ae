#!/bin/bash
# Nothing to compile: installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 layout.sh job.sh "$1"
