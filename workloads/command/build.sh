#!/bin/bash
# Installs the scripts, and compiles the program that times a command: linked statically, so that it
# runs in any image.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 measure.sh prepare.sh "$1"
gcc -std=gnu17 -O2 -static -Wall -Wextra -Werror -o "$1/timed" src/timed.c
