#!/bin/bash
# Installs the scripts, and compiles the library that paces nuttcp's connections.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 755 server.sh point.sh stream.sh ready.sh "$1"
install -m 644 pace.sh "$1"
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$1/pace.so" src/pace.c
