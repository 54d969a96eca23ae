#!/bin/bash
# Installs scripts, application and pages, and removes the servers that the packages set up.
# Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -D -m 644 -t "$1/../common/sourced" ../common/sourced/site.sh \
    ../common/sourced/data.sh ../common/sourced/nginx.sh ../common/sourced/postgresql.sh \
    ../common/sourced/supervise.sh
install -m 644 ../kit/load/generator.py ../kit/load/report.py \
    ../kit/load/rows.py ../kit/load/user.py ../kit/load/words.json "$1"
install -m 644 ./*.sql ./*.py "$1"
install -m 755 site.sh search.py ../kit/load/driver.py "$1"
cp -r app page "$1"
chmod -R u=rwX,go=rX "$1/app" "$1/page"

# Otherwise a virtual machine would start epmd with its own port.
ln -sf /dev/null /etc/systemd/system/epmd.socket
# These files differ in every build, and no server uses them.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main \
    /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
rm -rf /var/lib/rabbitmq/.erlang.cookie /var/lib/rabbitmq/mnesia /var/log/rabbitmq/*
find -L /etc/ssl/certs -type l -delete
