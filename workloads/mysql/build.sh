#!/bin/bash
# Installs the scripts.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/data.sh ../common/sourced/mariadb.sh
install -m 644 report.lua "$1"
install -m 755 database.sh "$1"
