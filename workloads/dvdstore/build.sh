#!/bin/bash
# Nothing to compile: installs the programs and the pages, and takes down what the packages set up for servers of their
# own.  Run in the image, in this folder, with the target folder as argument.
set -euo pipefail

install -m 644 common.sh schema.sql indexes.sql procedures.sql data_set.py orders.py answers.py check.py load.py "$1"
install -m 755 data.sh prepare.sh database.sh ready.sh web.sh reached.sh shopper.py "$1"
install -d -m 755 "$1/site"
install -m 644 site/* "$1/site"

units=(apache2.service apache-htcacheclean.service postgresql.service phpsessionclean.service phpsessionclean.timer)
# The machine that is provisioned has started them.
[ ! -d /run/systemd/system ] || systemctl stop --quiet 'postgresql@*' "${units[@]}" || true
for unit in "${units[@]}"; do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done
# A database and a key that are others in every build, and that nobody uses.
rm -rf /etc/postgresql/*/main /var/lib/postgresql/*/main /etc/ssl/private/ssl-cert-snakeoil.key /etc/ssl/certs/ssl-cert-snakeoil.pem
find -L /etc/ssl/certs -type l -delete
