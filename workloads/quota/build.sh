#!/bin/bash
# Installs the program.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 point.py "$1"
