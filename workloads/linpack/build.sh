#!/bin/bash
# Compiles the program for the architecture's baseline: one file runs on the host and in guests.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

gcc -std=gnu17 -O3 -fopenmp -Wall -Wextra -Werror -I ../common -o "$1/linpack" src/linpack.c \
    -lopenblas -lm
