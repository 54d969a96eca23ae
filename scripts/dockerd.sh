#!/bin/bash
# Makes sure that a Docker daemon answers and knows gVisor's runtimes.
#
# It starts the service if there is a service manager, otherwise dockerd itself, which stays up like
# a service; `scripts/dockerd.sh stop` ends the one that was started here.  A configuration file of
# the user is not changed, except by `scripts/dockerd.sh runtimes`: that adds the runtimes to it,
# and has the daemon read it again, which ends no container.
# `scripts/dockerd.sh runtime NAME PROGRAM [ARGUMENT...]` adds another runtime in the same way.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/daemons.sh
. scripts/daemons.sh

record=/run/strata-dockerd.pid
log=/var/log/strata-dockerd.log
# The user's configuration, and that of a daemon started here: the same with the runtimes.
user_config=${STRATA_DOCKER_CONFIG:-/etc/docker/daemon.json}
strata_config=/run/strata-dockerd.json
runsc=$(type -P runsc || true)

# Runs a command of Docker's client, with root's rights if this user may not use the daemon.
ask() { docker "$@" 2>/dev/null || "${root[@]}" docker "$@" 2>/dev/null; }

answers() { ask version >/dev/null; }

begin() {
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl start docker
    elif [ -n "$runsc" ] && configure "$strata_config"; then
        start dockerd "$record" "$log" --config-file "$strata_config"
    else
        start dockerd "$record" "$log"
    fi
}

# Whether the daemon knows the runtime NAME, by default one of gVisor's.
knows_runtimes() {
    [[ $(ask info --format '{{json .Runtimes}}' || true) == *"\"${1:-strata-runsc-host}\""* ]]
}

# Writes the user's configuration with the runtimes to FILE.  There is a runtime for each network
# stack; strata/environments/docker.py uses them by these names.
configure() {
    local file=$1 stack
    "${root[@]}" mkdir -p "$(dirname "$file")"
    if [ "$file" != "$user_config" ]; then
        if [ -e "$user_config" ]; then
            "${root[@]}" cp "$user_config" "$file"
        else
            "${root[@]}" rm -f "$file"
        fi
    fi
    for stack in sandbox host; do
        "${root[@]}" "$runsc" install --config_file="$file" --runtime="strata-runsc-$stack" -- \
            --network="$stack" 2>/dev/null && continue
        echo "docker: $user_config: gVisor's runtimes could not be added; is it a JSON object?" >&2
        return 1
    done
}

# Whether the runtimes may be added without a word: the user has no configuration, and the daemon
# reads the usual one, or was started here.
is_free_to_add() {
    [ ! -e "$user_config" ] && { [ -d /run/systemd/system ] || [ -s "$record" ]; }
}

# Has the daemon read its configuration again, and waits until it knows the runtime NAME, which
# WHAT stands for in messages.
reload() {
    local what=$1 name=$2 attempt
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl reload docker
    elif [ -s /run/docker.pid ]; then
        "${root[@]}" kill -HUP "$(cat /run/docker.pid)"
    fi
    for attempt in $(seq 50); do
        if knows_runtimes "$name"; then return 0; fi
        sleep 0.1
    done
    echo "docker: the daemon did not take $what within $((attempt / 10)) s; see what it logs" >&2
    return 1
}

# Adds the runtime NAME, which is PROGRAM with ARGUMENTs, to the configuration of the daemon that
# answers.
add_runtime() {
    local name=$1 program=$2 file files=("$user_config")
    if knows_runtimes "$name"; then return 0; fi
    if [ -s "$record" ] && [ -e "$strata_config" ]; then
        # A daemon started here copied the user's configuration, if there is one.
        files=("$strata_config")
        [ ! -e "$user_config" ] || files+=("$user_config")
    fi
    need_root "docker: the runtime $name has to be added to ${files[*]}"
    for file in "${files[@]}"; do
        "${root[@]}" mkdir -p "$(dirname "$file")"
        "${root[@]}" python3 -S -c '
import json, os, sys
file, name, program, *arguments = sys.argv[1:]
with open(file) if os.path.exists(file) else open(os.devnull) as text:
    content = json.loads(text.read() or "{}")
content.setdefault("runtimes", {})[name] = {"path": program, "runtimeArgs": arguments}
with open(file + ".new", "w") as new:
    json.dump(content, new, indent=4)
os.replace(file + ".new", file)
' "$file" "$name" "$program" "${@:3}" 2>/dev/null || {
            echo "docker: $file: the runtime could not be added; is it a JSON object?" >&2
            return 1
        }
    done
    reload "the runtime $name" "$name"
}

# Makes the runtimes known to the daemon that answers; WHEN is `requested` if the user's own
# configuration may be changed for that.
add_runtimes() {
    local when=$1
    if [ -z "$runsc" ] || knows_runtimes; then
        return 0
    elif [ "$when" = requested ] || is_free_to_add; then
        need_root "docker: gVisor's runtimes have to be added to $user_config"
        echo "docker: adding gVisor's runtimes to $user_config" >&2
        configure "$user_config"
        reload "gVisor's runtimes" strata-runsc-host || true
    else
        echo "docker: the daemon does not know gVisor's runtimes;" \
            "'scripts/dockerd.sh runtimes' adds them to $user_config" >&2
    fi
}

case ${1:-} in
stop) end dockerd "$record" ;;
runtimes)
    if [ -z "$runsc" ]; then
        echo "docker: runsc (gVisor) is not installed" >&2
        exit 1
    fi
    add_runtimes requested
    ;;
runtime)
    if [ $# -lt 3 ] || [ ! -x "$3" ]; then
        echo "usage: scripts/dockerd.sh runtime NAME PROGRAM [ARGUMENT...]: a program's path" >&2
        exit 1
    fi
    add_runtime "${@:2}"
    ;;
*)
    if ! answers; then
        if [[ $(docker version 2>&1 || true) == *"permission denied"* ]]; then
            echo "docker: this user may not use the daemon:" \
                "type 'sudo usermod -aG docker $(id -un)', and log in again" >&2
            exit 1
        fi
        await docker "$log"
    fi
    add_runtimes usual
    ;;
esac
