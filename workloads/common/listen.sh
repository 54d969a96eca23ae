#!/bin/bash
# Runs a server in the foreground, and makes it listen at one address instead of at all.
# Usage: listen ADDRESS PROGRAM...
set -euo pipefail

export STRATA_LISTEN=$1 LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}/opt/strata/bin/listen.so
shift
exec "$@"
