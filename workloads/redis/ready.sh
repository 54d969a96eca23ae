#!/bin/bash
# Succeeds once the server answers to the cell's password.  Usage: ready.sh ADDRESS PORT
set -euo pipefail

REDISCLI_AUTH=$(</data/password)
export REDISCLI_AUTH
[ "$(redis-cli -h "$1" -p "$2" ping)" = PONG ]
