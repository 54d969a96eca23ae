#!/bin/bash
# Sees that a Docker daemon answers: through the service manager where there is one, else by starting
# dockerd itself.  It stays up like any service; `scripts/dockerd.sh stop` ends the one started here.
set -euo pipefail
# shellcheck source=scripts/daemons.sh
. "$(dirname "$0")/daemons.sh"

record=/run/strata-dockerd.pid
log=/var/log/strata-dockerd.log

answers() { "${root[@]}" docker version >/dev/null 2>&1; }

if [ "${1:-}" = stop ]; then
    end dockerd "$record"
    exit 0
fi
if answers; then
    exit 0
fi
echo "docker: no daemon answers; starting one" >&2
if [ -d /run/systemd/system ]; then
    "${root[@]}" systemctl start docker
else
    start dockerd "$record" "$log"
fi
await docker "$log" dockerd "$record"
