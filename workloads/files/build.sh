#!/bin/bash
# Installs the script.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 session.py "$1"
