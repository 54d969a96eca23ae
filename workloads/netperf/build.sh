#!/bin/bash
# Nothing to compile: installs the script.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 point.sh "$1"
