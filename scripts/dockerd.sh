#!/bin/bash
# Sees that a Docker daemon answers: through the service manager where there is one, else by starting
# dockerd itself.  It stays up like any service; `scripts/dockerd.sh stop` ends the one started here.
set -euo pipefail

record=/run/strata-dockerd.pid
log=/var/log/strata-dockerd.log
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

if [ "${1:-}" = stop ]; then
    if [ -s "$record" ] && [ "$(cat "/proc/$(cat "$record")/comm" 2>/dev/null)" = dockerd ]; then
        pid=$(cat "$record")
        "${root[@]}" kill "$pid"
        for _ in $(seq 100); do
            [ -d "/proc/$pid" ] || break
            sleep 0.1
        done
    fi
    "${root[@]}" rm -f -- "$record"
    exit 0
fi

answers() { "${root[@]}" docker version >/dev/null 2>&1; }

if answers; then
    exit 0
fi
echo "docker: no daemon answers; starting one" >&2
if [ -d /run/systemd/system ]; then
    "${root[@]}" systemctl start docker
else
    # The daemon must outlive this shell and not hold its terminal or its lock files.
    "${root[@]}" sh -c "setsid nohup dockerd >>$log 2>&1 </dev/null & echo \$! >$record"
fi
for _ in $(seq 150); do
    if answers; then
        exit 0
    fi
    sleep 0.2
done
echo "docker: no daemon answers after 30 s; see $log" >&2
exit 1
