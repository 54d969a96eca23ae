# shellcheck shell=bash
# Sourced by the other scripts: where the server's files are, and how it is asked.

# shellcheck disable=SC2034  # the scripts that source this use it
home=/data/mysql
# The account of the load, which may use nothing but its one schema; its password is made for every cell.
user=sbtest schema=sbtest secret=/data/password

# Asks the server over TCP.  Usage: ask ADDRESS PORT SQL
# Without encryption, which the server refuses: the client of some distributions would insist on it.
ask() {
    MYSQL_PWD=$(<"$secret") mariadb --no-defaults --protocol=tcp --skip-ssl --connect-timeout=5 --host="$1" --port="$2" \
        --user="$user" --batch --raw --skip-column-names "$schema" --execute="$3"
}
