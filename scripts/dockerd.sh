#!/bin/bash
# Makes sure that a Docker daemon answers and knows gVisor's runtimes.
#
# It starts the service if there is a service manager, otherwise dockerd itself, which stays up like
# a service; `scripts/dockerd.sh stop` ends the one that was started here.  A configuration file of
# the user is not changed, except by `scripts/dockerd.sh runtimes`: that adds the runtimes to it,
# and has the daemon read it again, which ends no container.
# `scripts/dockerd.sh runtime NAME PROGRAM [ARGUMENT...]` adds another runtime in the same way.
# `scripts/dockerd.sh second PROGRAM` starts another Docker daemon next to the usual one, with its
# own socket, images and bridge; `scripts/dockerd.sh end [PROGRAM]` ends and removes those of this
# path, or all second ones.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/daemons.sh
. scripts/daemons.sh

record=/run/strata-dockerd.pid
log=/var/log/strata-dockerd.log
# The configuration of the user, and of a daemon started here: a copy of the former with runtimes.
user_config=${STRATA_DOCKER_CONFIG:-/etc/docker/daemon.json}
strata_config=/run/strata-dockerd.json
runsc=$(type -P runsc || true)

# Runs a command of Docker's client, and again with root's rights if it fails, as it does for a user
# who may not use the daemon.  Errors are not printed.  Usage: run_docker ARGUMENT…
run_docker() { docker "$@" 2>/dev/null || "${root[@]}" docker "$@" 2>/dev/null; }

# Succeeds if the daemon answers.
is_answering() { run_docker version >/dev/null; }

# Starts Docker: its service, or a daemon with the user's configuration and gVisor's runtimes, if
# runsc is installed.
start_service() {
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl start docker
    elif [ -n "$runsc" ] && copy_configuration && write_gvisor_runtimes "$strata_config"; then
        start_daemon dockerd "$record" "$log" --config-file "$strata_config"
    else
        start_daemon dockerd "$record" "$log"
    fi
}

# Succeeds if the daemon knows a runtime.
# Usage: has_runtime [NAME]      (without NAME: the one that write_gvisor_runtimes adds last)
has_runtime() {
    local name=${1:-strata-runsc-host-gofer}
    [[ $(run_docker info --format '{{json .Runtimes}}' || true) == *"\"$name\""* ]]
}

# Adds a runtime to the configuration in FILE, or replaces the one of that name; creates a missing
# file.  The daemon does not read it yet.  FILE is replaced in one step, so that it is never
# partial.
# Usage: write_runtime FILE NAME PROGRAM [ARGUMENT...]
write_runtime() {
    "${root[@]}" mkdir -p "$(dirname "$1")"
    "${root[@]}" python3 -S -c '
import json, os, sys
file, name, program, *arguments = sys.argv[1:]
with open(file) if os.path.exists(file) else open(os.devnull) as text:
    content = json.loads(text.read() or "{}")
content.setdefault("runtimes", {})[name] = {"path": program, "runtimeArgs": arguments}
with open(file + ".new", "w") as new:
    json.dump(content, new, indent=4)
os.replace(file + ".new", file)
' "$@" 2>/dev/null && return
    echo "docker: $1: the runtime $2 could not be added; is it a JSON object?" >&2
    return 1
}

# Adds gVisor's runtimes to a configuration: for each network stack one that opens files itself, and
# one that leaves this to another process, the gofer.  strata/environments/docker.py uses them by
# these names, and has_runtime and add_gvisor_runtimes look for the last.
# Usage: write_gvisor_runtimes FILE
write_gvisor_runtimes() {
    local file=$1 stack
    for stack in sandbox host; do
        write_runtime "$file" "strata-runsc-$stack" "$runsc" "--network=$stack" || return 1
        write_runtime "$file" "strata-runsc-$stack-gofer" "$runsc" "--network=$stack" \
            --directfs=false || return 1
    done
}

# Copies the user's configuration, if there is one, to strata_config, for a daemon that is started
# here; removes an earlier copy.
copy_configuration() {
    "${root[@]}" rm -f "$strata_config"
    [ ! -e "$user_config" ] || "${root[@]}" cp "$user_config" "$strata_config"
}

# Sets the array `files` to the configurations that the daemon which answers reads, now or at its
# next start: a daemon started here copied the user's, if there is one.
find_configurations() {
    files=("$user_config")
    if [ -s "$record" ] && [ -e "$strata_config" ]; then
        files=("$strata_config")
        [ ! -e "$user_config" ] || files+=("$user_config")
    fi
}

# Succeeds if runtimes may be added without the user's request: the user has no configuration, and
# the daemon reads the usual one, or was started here.
is_free_to_add() {
    [ ! -e "$user_config" ] && { [ -d /run/systemd/system ] || [ -s "$record" ]; }
}

# Lets the daemon read its configuration again, which ends no container, and waits 5 s at most until
# it knows a runtime; fails otherwise.
# Usage: reload_daemon WHAT NAME      (NAME: of the runtime; WHAT: its name in messages)
reload_daemon() {
    local what=$1 name=$2 attempt
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl reload docker
    elif [ -s /run/docker.pid ]; then
        "${root[@]}" kill -HUP "$(cat /run/docker.pid)"
    fi
    for attempt in $(seq 50); do
        if has_runtime "$name"; then return 0; fi
        sleep 0.1
    done
    echo "docker: the daemon did not take $what within $((attempt / 10)) s; see what it logs" >&2
    return 1
}

# Adds a runtime to the configuration of the daemon that answers, unless it knows the runtime.
# Usage: add_runtime NAME PROGRAM [ARGUMENT...]
add_runtime() {
    local name=$1 file files
    if has_runtime "$name"; then return 0; fi
    find_configurations
    require_root "docker: the runtime $name has to be added to ${files[*]}"
    for file in "${files[@]}"; do write_runtime "$file" "$@"; done
    reload_daemon "the runtime $name" "$name"
}

# Adds gVisor's runtimes to the configuration of the daemon that answers, unless it knows them or
# runsc is missing.  If a daemon does not take them, gVisor is not available.
# Usage: add_gvisor_runtimes WHEN      (requested: the user's own configuration may be changed;
# usual: it may not, and a message names the command that does)
add_gvisor_runtimes() {
    local when=$1 file files
    find_configurations
    if [ -z "$runsc" ] || has_runtime; then
        return 0
    elif [ "$when" = requested ] || is_free_to_add; then
        require_root "docker: gVisor's runtimes have to be added to ${files[*]}"
        echo "docker: adding gVisor's runtimes to ${files[*]}" >&2
        for file in "${files[@]}"; do write_gvisor_runtimes "$file"; done
        reload_daemon "gVisor's runtimes" strata-runsc-host-gofer || true
    else
        echo "docker: the daemon does not know gVisor's runtimes;" \
            "'scripts/dockerd.sh runtimes' adds them to ${files[*]}" >&2
    fi
}

# Sets `second`, `data` and `bridge`: the paths and the bridge of a second daemon, which contain a
# part of the digest of its program.  strata/environments/common/docker_daemon.py knows the socket
# by this rule.  They are global.  Usage: set_second DIGEST
set_second() {
    second=/run/strata-dockerd-$1
    data=/var/lib/strata-dockerd-$1
    bridge=sd-$1
}

# Makes the bridge of a second daemon, unless it exists, with the first network 10.213.N.0/24 to
# which no route leads.  set_second has set `bridge`.
make_bridge() {
    local number routes
    if ip link show "$bridge" >/dev/null 2>&1; then return 0; fi
    routes=$(ip -4 route show table all)
    for number in $(seq 0 255); do
        if [[ $routes != *10.213.$number.* ]]; then break; fi
    done
    "${root[@]}" ip link add "$bridge" type bridge
    "${root[@]}" ip address add "10.213.$number.1/24" dev "$bridge"
    "${root[@]}" ip link set "$bridge" up
}

# Writes the configuration of a second daemon: paths of its own, the runtimes of the usual one, and
# as a label its program, by which end_second finds it.  Usage: configure_second PROGRAM
configure_second() {
    "${root[@]}" python3 -S -c '
import json, os, sys
target, program, base, data, bridge, *sources = sys.argv[1:]
runtimes = {}
for source in filter(os.path.exists, sources):
    with open(source) as text:
        runtimes |= json.loads(text.read() or "{}").get("runtimes", {})
name = os.path.basename(base)
content = {
    "hosts": [f"unix://{base}.sock"], "pidfile": f"{base}.docker.pid", "exec-root": base,
    "data-root": data, "bridge": bridge, "runtimes": runtimes, "labels": [f"program={program}"],
    "containerd-namespace": name, "containerd-plugins-namespace": f"{name}-plugins",
}
with open(target, "w") as file:
    json.dump(content, file, indent=4)
' "$second.json" "$1" "$second" "$data" "$bridge" "$user_config" "$strata_config"
}

# Prints the rules of the packet filter, sorted, each as "TABLE CHAIN RULE".
list_rules() {
    local table
    for table in nat filter; do
        "${root[@]}" iptables-save -t "$table" | sed -n "s/^-A /$table /p"
    done | sort
}

# Adds the rules of Docker's chains again that are gone: a daemon that starts empties these chains,
# and with them those of the usual daemon.
# Usage: restore_rules RULES      (RULES: as list_rules printed them before)
restore_rules() {
    local table chain rule
    while read -r table chain rule; do
        if [[ $chain != DOCKER* ]]; then continue; fi
        read -ra rule <<<"$rule"
        "${root[@]}" iptables -t "$table" -I "$chain" "${rule[@]}"
    done < <(comm -23 <(echo "$1") <(list_rules))
}

# Removes the rules that name the bridge of a second daemon.  set_second has set `bridge`.
remove_rules() {
    local table chain rule
    while read -r table chain rule; do
        read -ra rule <<<"$rule"
        "${root[@]}" iptables -t "$table" -D "$chain" "${rule[@]}"
    done < <(list_rules | grep -F -- "$bridge")
}

# Starts the second daemon of a program, unless it answers; rules of the usual daemon stay.
# Programs in the same folder, such as containerd, are found before those of the system.
# Usage: start_second PROGRAM
start_second() {
    local program=${1:-} rules
    if [ $# != 1 ] || [[ $program != /* ]] || [ ! -x "$program" ]; then
        echo "usage: scripts/dockerd.sh second PROGRAM: the absolute path of a dockerd" >&2
        exit 1
    fi
    require_root "docker: a second daemon has to be started"
    set_second "$(sha256sum "$program" | cut -c 1-12)"
    # Both are those that start_until_answering calls, for this daemon.
    is_answering() { "${root[@]}" docker --host "unix://$second.sock" version >/dev/null 2>&1; }
    start_service() {
        PATH=$(dirname "$program"):$PATH start_daemon "$program" "$second.pid" "$second.log" \
            --config-file "$second.json"
    }
    if is_answering; then return 0; fi
    make_bridge
    configure_second "$program"
    rules=$(list_rules)
    start_until_answering "docker ($program)" "$second.log"
    restore_rules "$rules"
}

# Ends the second daemons of a program, or all of them, and removes their bridges, images and files.
# A program that was replaced since is found by its path.  Nothing is removed while something is
# still mounted in a daemon's data.  Usage: end_second [PROGRAM]
end_second() {
    local configuration digest program
    require_root "docker: a second daemon has to be ended"
    for configuration in /run/strata-dockerd-*.json; do
        if [ ! -e "$configuration" ]; then continue; fi
        program=$("${root[@]}" sed -n 's/.*"program=\(.*\)".*/\1/p' "$configuration")
        if [ $# = 1 ] && [ "$1" != "$program" ]; then continue; fi
        digest=$(basename "$configuration" .json)
        set_second "${digest#strata-dockerd-}"
        end_daemon "$program" "$second.pid"
        if grep -qF " $data/" /proc/mounts; then
            echo "docker: $data stays, since something is still mounted in it" >&2
            exit 1
        fi
        remove_rules
        "${root[@]}" ip link delete "$bridge" 2>/dev/null || true
        "${root[@]}" rm -rf --one-file-system "$data" "$second" "$second.json" "$second.sock" \
            "$second.log" "$second.docker.pid"
    done
}

case ${1:-} in
second) start_second "${@:2}" ;;
end) end_second "${@:2}" ;;
stop) end_daemon dockerd "$record" ;;
runtimes)
    if [ -z "$runsc" ]; then
        echo "docker: runsc (gVisor) is not installed" >&2
        exit 1
    fi
    add_gvisor_runtimes requested
    ;;
runtime)
    if [ $# -lt 3 ] || [ ! -x "$3" ]; then
        echo "usage: scripts/dockerd.sh runtime NAME PROGRAM [ARGUMENT...]: a program's path" >&2
        exit 1
    fi
    add_runtime "${@:2}"
    ;;
*)
    if ! is_answering; then
        if [[ $(docker version 2>&1 || true) == *"permission denied"* ]]; then
            echo "docker: this user may not use the daemon:" \
                "type 'sudo usermod -aG docker $(id -un)', and log in again" >&2
            exit 1
        fi
        start_until_answering docker "$log"
    fi
    add_gvisor_runtimes usual
    ;;
esac
