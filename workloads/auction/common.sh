# shellcheck shell=bash
# Sourced by the other scripts: where things are, and as whom they are run.

# shellcheck disable=SC2034  # the scripts that source this use them
home=/data/auction programs=/opt/strata/workloads/auction database=auction
# The database's folder, with its socket, and the broker's password, which is made for every cell.
# shellcheck disable=SC2034
store=$home/store secret=/data/password

# What runs a command as a user of the packages': nothing needs to be root.
# shellcheck disable=SC2034
as_broker=(setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups --)
# shellcheck disable=SC2034
as_site=(setpriv --reuid=www-data --regid=www-data --clear-groups --)
