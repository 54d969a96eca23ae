#!/bin/bash
# Ends the server, which keeps nothing.  Usage: stop.sh ADDRESS PORT
set -euo pipefail

REDISCLI_AUTH=$(</data/password)
export REDISCLI_AUTH
redis-cli -h "$1" -p "$2" shutdown nosave
