#!/bin/bash
# Installs programs and pages, and removes what the packages made for servers of their own.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/site.sh \
    ../common/sourced/postgresql.sh ../common/sourced/stand.sh
install -m 644 ../kit/load/generator.py ../kit/load/report.py \
    ../kit/load/rows.py ../kit/load/user.py ../kit/load/words.json "$1"
install -m 644 apache.conf ./*.sql ./*.py "$1"
install -m 755 site.sh ../kit/load/driver.py "$1"
install -d -m 755 "$1/site"
install -m 644 site/* "$1/site"

# These differ in every build, and nobody uses them.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main \
    /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
find -L /etc/ssl/certs -type l -delete
