#!/bin/bash
# Installs the program, and compiles the command that it starts.  Run in the image, in this folder,
# with the target folder as argument.
set -euo pipefail

gcc -std=gnu17 -O2 -static -Wall -Wextra -Werror -o "$1/first" src/first.c
install -m 755 start.sh start.py "$1"
