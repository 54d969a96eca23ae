#!/bin/bash
# Installs the scripts, and removes the server that the package sets up.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/data.sh \
    ../common/sourced/postgresql.sh
install -m 755 database.sh "$1"
# These files differ in every build, and no server uses them.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main \
    /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
find -L /etc/ssl/certs -type l -delete
