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

answers() { "${root[@]}" docker version >/dev/null 2>&1; }

known() { "${root[@]}" docker info --format '{{json .Runtimes}}' 2>/dev/null | grep -q strata-runsc-; }

# The configuration with the runtimes among its own, of which nothing changes, put in the place of FILE.  One for each
# platform and network stack; strata/layers/common/gvisor.py asks for them by these names.
configure() {
    local file=$1 text
    text=$(python3 -c '
import json, os, sys
path, runsc = sys.argv[1:]
try:
    told = json.loads(open(path).read().strip() or "{}") if os.path.exists(path) else {}
    known = told.setdefault("runtimes", {})
    for platform in ("ptrace", "systrap", "kvm"):
        for stack in ("sandbox", "host"):
            words = [f"--platform={platform}", f"--network={stack}"]
            known.setdefault(f"strata-runsc-{platform}-{stack}", {"path": runsc, "runtimeArgs": words})
except (ValueError, AttributeError) as error:
    sys.exit(f"{path}: is no JSON object with a mapping of runtimes ({error})")
print(json.dumps(told, indent=1))
' "$own" "$runsc") || return 1
    "${root[@]}" mkdir -p "$(dirname "$file")"
    # shellcheck disable=SC2016  # the inner shell's own arguments
    "${root[@]}" sh -c 'cat >"$1.new" && mv -f "$1.new" "$1"' sh "$file" <<<"$text"
}

# Whether the daemon that answers was started here with its own configuration.
is_ours() {
    [ -s "$record" ] && tr '\0' ' ' <"/proc/$(cat "$record")/cmdline" 2>/dev/null | grep -q -- "--config-file $ours"
}

await_known() {
    local attempt
    for attempt in $(seq 50); do
        if known; then return 0; fi
        sleep 0.1
    done
    echo "docker: the daemon did not take gVisor's runtimes after ${attempt} looks; see what it logs" >&2
}

# Makes the runtimes known to the daemon that answers, if nothing of the user's has to be changed for that.
see_runtimes() {
    if [ -z "$runsc" ] || known; then
        return 0
    fi
    if is_ours; then
        configure "$ours"
        "${root[@]}" kill -HUP "$(cat "$record")"
        await_known
    elif [ "${1:-}" = asked ] || { [ ! -e "$own" ] && { [ -d /run/systemd/system ] || [ -s "$record" ]; }; }; then
        echo "docker: adding gVisor's runtimes to $own" >&2
        configure "$own"
        if [ -d /run/systemd/system ]; then
            "${root[@]}" systemctl reload docker
        elif [ -s /run/docker.pid ]; then
            "${root[@]}" kill -HUP "$(cat /run/docker.pid)"
        fi
        await_known
    else
        echo "docker: the daemon does not know gVisor's runtimes; 'scripts/dockerd.sh runtimes' adds them to $own" >&2
    fi
}

runsc=$(type -P runsc || true)
case ${1:-} in
stop)
    end dockerd "$record"
    exit 0
    ;;
runtimes)
    if [ -z "$runsc" ]; then
        echo "docker: runsc (gVisor) is not installed" >&2
        exit 1
    fi
    see_runtimes asked
    exit 0
    ;;
esac
if ! answers; then
    echo "docker: no daemon answers; starting one" >&2
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl start docker
    else
        arguments=()
        if [ -n "$runsc" ] && configure "$ours"; then
            arguments=(--config-file "$ours")
        fi
        start dockerd "$record" "$log" "${arguments[@]}"
    fi
    await docker "$log" dockerd "$record" "${arguments[@]}"
fi
see_runtimes
