# shellcheck shell=bash
# Sourced by the other scripts: where the server's files are, and how it is asked.

# shellcheck disable=SC2034  # the scripts that source this use it
home=/data/mysql
# A throwaway account: it exists only in the database that data.sh makes, and may use nothing but its one schema.
user=sbtest password=strata schema=sbtest

# Asks the server over TCP.  Usage: ask ADDRESS PORT SQL
# Without encryption, which the server refuses: the client of some distributions would insist on it.
ask() {
    mariadb --no-defaults --protocol=tcp --skip-ssl --connect-timeout=5 --host="$1" --port="$2" \
        --user="$user" --password="$password" --batch --raw --skip-column-names "$schema" --execute="$3"
}
