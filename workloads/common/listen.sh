#!/bin/bash
# Runs a server, in the foreground, that listens at one address where it would at all.
# Usage: listen ADDRESS PROGRAM...
set -euo pipefail

export STRATA_LISTEN=$1 LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}/opt/strata/bin/listen.so
shift
exec "$@"
