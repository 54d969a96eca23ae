#!/bin/bash
# Installs scripts and pages, and removes the server that the packages set up.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/site.sh \
    ../common/sourced/data.sh ../common/sourced/postgresql.sh ../common/sourced/supervise.sh
install -m 644 ../kit/load/generator.py ../kit/load/report.py \
    ../kit/load/rows.py ../kit/load/user.py ../kit/load/words.json "$1"
install -m 644 apache.conf ./*.sql ./*.py "$1"
install -m 755 site.sh ../kit/load/driver.py "$1"
install -d -m 755 "$1/site"
install -m 644 site/* "$1/site"

# These files differ in every build, and no server uses them.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main \
    /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
find -L /etc/ssl/certs -type l -delete
