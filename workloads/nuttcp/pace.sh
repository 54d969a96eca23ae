# shellcheck shell=bash
# Read by the others: settings with which nuttcp's connections to certain ports are paced.

# Prints the environment as words for env(1).
# Usage: pace PORTS MBIT_PER_SECOND     (PORTS: numbers that follow one another, separated by commas)
pace() {
    local -a ports
    IFS=, read -ra ports <<<"$1"
    printf '%s\n' "LD_PRELOAD=$(dirname "${BASH_SOURCE[0]}")/pace.so" \
        "STRATA_PACE=${ports[0]} ${ports[-1]} $(($2 * 125000 / ${#ports[@]}))"
}
