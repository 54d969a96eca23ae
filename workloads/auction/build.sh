#!/bin/bash
# Nothing to compile: installs programs, application and pages, and removes what the packages made for servers of their
# own.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/nginx.sh ../common/sourced/postgresql.sh ../common/sourced/stand.sh
install -m 644 ../kit/load/said.py ../kit/load/walk.py ../kit/load/rows.py ../kit/load/words.json \
    ../kit/load/drive.py ../kit/load/visits.py ../kit/load/users.py "$1"
install -m 644 ./*.sql ./*.py "$1"
install -m 755 site.sh driver.py "$1"
cp -r app page "$1"
chmod -R u=rwX,go=rX "$1/app" "$1/page"

# The port of Erlang's names is opened at a machine's start, and not as a service.
ln -sf /dev/null /etc/systemd/system/epmd.socket
# What is another in every build, and what nobody uses: a database, a key, the broker's cookie and tables.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
rm -rf /var/lib/rabbitmq/.erlang.cookie /var/lib/rabbitmq/mnesia /var/log/rabbitmq/*
find -L /etc/ssl/certs -type l -delete
