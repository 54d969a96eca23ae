#!/bin/bash
# Compiles the program.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

gcc -std=gnu17 -O2 -Wall -Wextra -Werror -I ../common -o "$1/logs" src/logs.c
