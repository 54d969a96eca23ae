#!/bin/bash
# Sees that a Docker daemon answers and knows gVisor's runtimes: through the service manager where there is one, else
# by starting dockerd itself.  It stays up like any service; `scripts/dockerd.sh stop` ends the one started here.
# A configuration of the user's own is never changed, unless that is asked for: `scripts/dockerd.sh runtimes` adds the
# runtimes to it and has the daemon read it again, which ends no container.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/daemons.sh
. scripts/daemons.sh

record=/run/strata-dockerd.pid
log=/var/log/strata-dockerd.log
# The user's configuration, and that of the daemon started here: the same with the runtimes.
own=${STRATA_DOCKER_CONFIG:-/etc/docker/daemon.json}
ours=/run/strata-dockerd.json
runsc=$(type -P runsc || true)

# Docker's own group may ask the daemon, too.
ask() { docker "$@" 2>/dev/null || "${root[@]}" docker "$@" 2>/dev/null; }

answers() { ask version >/dev/null; }

begin() {
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl start docker
    elif [ -n "$runsc" ] && configure "$ours"; then
        start dockerd "$record" "$log" --config-file "$ours"
    else
        start dockerd "$record" "$log"
    fi
}

known() { [[ $(ask info --format '{{json .Runtimes}}' || true) == *strata-runsc-host* ]]; }

# Puts the runtimes into the configuration FILE, among the user's own, of which nothing changes.  One for each network
# stack; strata/environments/docker.py asks for them by these names.
configure() {
    local file=$1 stack
    "${root[@]}" mkdir -p "$(dirname "$file")"
    if [ "$file" != "$own" ]; then
        if [ -e "$own" ]; then "${root[@]}" cp "$own" "$file"; else "${root[@]}" rm -f "$file"; fi
    fi
    for stack in sandbox host; do
        "${root[@]}" "$runsc" install --config_file="$file" --runtime="strata-runsc-$stack" -- \
            --network="$stack" 2>/dev/null && continue
        echo "docker: $own: gVisor's runtimes could not be added; is it a JSON object?" >&2
        return 1
    done
}

# Makes the runtimes known to the daemon that answers, if nothing of the user's has to be changed for that.
see_runtimes() {
    local attempt
    if [ -z "$runsc" ] || known; then
        return 0
    elif [ "${1:-}" = asked ] || { [ ! -e "$own" ] && { [ -d /run/systemd/system ] || [ -s "$record" ]; }; }; then
        need_root "docker: gVisor's runtimes have to be added to $own"
        echo "docker: adding gVisor's runtimes to $own" >&2
        configure "$own"
        if [ -d /run/systemd/system ]; then
            "${root[@]}" systemctl reload docker
        elif [ -s /run/docker.pid ]; then
            "${root[@]}" kill -HUP "$(cat /run/docker.pid)"
        fi
        for attempt in $(seq 50); do
            if known; then return 0; fi
            sleep 0.1
        done
        echo "docker: the daemon did not take gVisor's runtimes after $attempt looks; see what it logs" >&2
    else
        echo "docker: the daemon does not know gVisor's runtimes; 'scripts/dockerd.sh runtimes' adds them to $own" >&2
    fi
}

case ${1:-} in
stop) end dockerd "$record" ;;
runtimes)
    if [ -z "$runsc" ]; then
        echo "docker: runsc (gVisor) is not installed" >&2
        exit 1
    fi
    see_runtimes asked
    ;;
*)
    if ! answers; then
        if [[ $(docker version 2>&1 || true) == *"permission denied"* ]]; then
            echo "docker: this user may not use the daemon: type 'sudo usermod -aG docker $(id -un)', and log in again" >&2
            exit 1
        fi
        await docker "$log"
    fi
    see_runtimes
    ;;
esac
