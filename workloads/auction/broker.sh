#!/bin/bash
# The message broker (RabbitMQ) and the daemon that Erlang wants to find its nodes, in the foreground; both listen on
# the loopback alone.  Usage: broker.sh PORT,DISTRIBUTION_PORT,NAMES_PORT
set -euo pipefail

# shellcheck source=workloads/auction/common.sh
source "${0%/*}/common.sh"
# shellcheck source=workloads/common/sourced/stand.sh
source "${0%/*}/../common/sourced/stand.sh"

IFS=, read -r port distribution names <<<"$1"
folder=$home/broker
mkdir -p "$folder"/{mnesia,log,none,plugins}
echo '[].' >"$folder/enabled"
# Not every root has /etc/hosts, by which names of the machine itself are found.
echo '{host, {127,0,0,1}, ["localhost"]}. {lookup, [file, native]}.' >"$folder/names"
(
    umask 077
    cat >"$folder/broker.conf" <<END
listeners.tcp.1 = 127.0.0.1:$port
default_user = auction
default_pass = $(<"$secret")
log.file = false
log.console = true
log.console.level = warning
disk_free_limit.absolute = 64MB
END
)
chown -R rabbitmq: "$folder"

# Nothing of the distribution's configuration counts.
export HOME=$folder LANG=C.UTF-8
export ERL_INETRC=$folder/names
export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$names
export RABBITMQ_NODENAME=auction@localhost RABBITMQ_DIST_PORT=$distribution
export RABBITMQ_CONF_ENV_FILE=$folder/none/env RABBITMQ_CONFIG_FILES=$folder/none
export RABBITMQ_CONFIG_FILE=$folder/broker.conf RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none/advanced.config
export RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled
export RABBITMQ_MNESIA_BASE=$folder/mnesia RABBITMQ_LOG_BASE=$folder/log RABBITMQ_LOGS=- RABBITMQ_PID_FILE=$folder/pid
# Erlang looks for each of the broker's 650 modules in one folder after another, most of which are of plugins that nobody
# uses; in an emulated machine that took longer than all the rest.  So the folders with most modules come first.
shopt -s nullglob
plugins=(/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins)
first=(
    "${plugins[0]}"/{cuttlefish,khepri,khepri_mnesia_migration,osiris,ra,rabbit,rabbit_common}-[0-9]*/ebin
    "${plugins[0]}"/{rabbitmq_prelaunch,ranch}-[0-9]*/ebin
    /usr/lib/erlang/lib/{compiler,kernel,mnesia,ssl,stdlib}-[0-9]*/ebin
)
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -pa ${first[*]}"
# Nor does the broker look through the plugins: its own folder among them holds what its settings may be.
ln -sf -t "$folder/plugins" "${plugins[0]}"/rabbit-[0-9]*
export RABBITMQ_PLUGINS_DIR=$folder/plugins
cd "$folder"
# It has to be there before the broker, which would start one that outlives it.
"${as_broker[@]}" epmd -port "$names" -address 127.0.0.1 &
names_process=$!
until /opt/strata/bin/reach 127.0.0.1 "$names"; do
    kill -0 "$names_process"
    sleep 0.05
done
"${as_broker[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server &
standing=($!)
trap 'kill "$names_process"' EXIT
stand TERM
