# shellcheck shell=bash
# Sourced by nuttcp's scripts: makes the kernel pace the connections of certain ports.

# Prints environment variables, one a line, that load pace.so (src/pace.c) into a program, and tell
# it the ports and the rate of each connection in bytes per second.
# Usage: pacing_variables PORTS MBIT_PER_SECOND
# PORTS: a list with commas, of consecutive ports.  MBIT_PER_SECOND: of all connections together.
pacing_variables() {
    local -a ports
    IFS=, read -ra ports <<<"$1"
    printf '%s\n' "LD_PRELOAD=$(dirname "${BASH_SOURCE[0]}")/pace.so" \
        "STRATA_PACE=${ports[0]} ${ports[-1]} $(($2 * 125000 / ${#ports[@]}))"
}
