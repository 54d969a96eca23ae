#!/bin/bash
# Installs the server's script, compiles the load generator, and keeps the packaged server off.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/nginx.sh
install -m 755 server.sh "$1"
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -I ../common -o "$1/load" src/load.c
