#!/bin/bash
# Compiles the program statically: it starts itself, and no loader's time is counted.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

gcc -std=gnu17 -O2 -static -Wall -Wextra -Werror -I ../common -o "$1/calls" src/calls.c
