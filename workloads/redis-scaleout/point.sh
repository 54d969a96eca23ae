#!/bin/bash
# One set-up under load, at the client: looks whether every request is answered rightly, fills the servers, lets the
# load settle, and asks the servers before and after some seconds what they have answered.
# Usage: point.sh SETUP ADDRESSES PORTS PINNED_PORTS CONNECTIONS BASELINE_CONNECTIONS PIPELINE BYTES KEYS SETTLE
#   SECONDS SEED STATS_PORT     (KEYS for each server, SETTLE and SECONDS in seconds)
# SETUP: baseline (one server, one load generator, nothing between), scale-out (all servers behind twemproxy and
# HAProxy, a load generator for each), half (the same with half of the connections) or pinned (to the pinned servers).
# ADDRESSES and both PORTS are separated by commas, the ports of the first system first.
set -euo pipefail

setup=$1 connections=$5 pipeline=$7 bytes=$8 keys=$9
settle=${10} seconds=${11} seed=${12} stats_port=${13}
IFS=, read -ra addresses <<<"$2"
IFS=, read -ra ports <<<"$3"
IFS=, read -ra pinned <<<"$4"
if [ "${#ports[@]}" != "${#pinned[@]}" ] || ((${#ports[@]} % ${#addresses[@]} != 0)); then
    echo "there are ${#ports[@]} ports and ${#pinned[@]} pinned_ports; there must be as many of both" >&2
    exit 2
fi
each=$((${#ports[@]} / ${#addresses[@]}))
every=("${ports[@]}" "${pinned[@]}")
case $setup in
baseline) connections=$6 ports=("${ports[0]}") ;;
half) connections=$((connections / 2)) ;;
pinned) ports=("${pinned[@]}") ;;
esac
count=${#ports[@]}
keyspace=$((keys * count))
password=$(</data/password)
export REDISCLI_AUTH=$password
umask 077
work=$(mktemp -d)
proxies=() generators=()

# Ends what this script started; the shell would tell of each that was killed.
finish() {
    exec 2>/dev/null
    [ ${#generators[@]} -eq 0 ] || kill -KILL "${generators[@]}" 2>/dev/null || true
    [ ${#proxies[@]} -eq 0 ] || kill "${proxies[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM

fail() {
    echo "$*" >&2
    exit 1
}

# A command to the server with a number, from 0.
ask() {
    local number=$1
    shift
    redis-cli -h "${addresses[number / each]}" -p "${ports[number]}" "$@" | tr -d '\r'
}

# One twemproxy for each server, all of which know all servers, and HAProxy before them.  They and the load
# generators are on one machine, and talk through sockets of its own.  A server's name, and not its address, says
# which keys are its own: they are the same in every environment.
start_proxies() {
    local proxy number
    for ((proxy = 0; proxy < count; proxy++)); do
        {
            printf 'pool:\n  listen: %s/twemproxy%d\n  redis: true\n  redis_auth: %s\n' "$work" "$proxy" "$password"
            printf '  hash: fnv1a_64\n  distribution: ketama\n  preconnect: true\n  servers:\n'
            for ((number = 0; number < count; number++)); do
                printf '   - %s:%d:1 server%d\n' "${addresses[number / each]}" "${ports[number]}" "$number"
            done
        } >"$work/twemproxy$proxy.yml"
        nutcracker -c "$work/twemproxy$proxy.yml" -o "$work/twemproxy$proxy.log" -v 4 -p "$work/twemproxy$proxy.pid" \
            -a 127.0.0.1 -s $((stats_port + proxy)) -i 100 &
        proxies+=($!)
    done
    {
        printf 'global\n  maxconn %d\n' $((count * connections + 100))
        printf '  log stdout format raw local0 warning\n'
        printf 'defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n'
        printf 'listen redis\n  log global\n  bind unix@%s/front\n  balance roundrobin\n' "$work"
        for ((proxy = 0; proxy < count; proxy++)); do
            printf '  server twemproxy%d unix@%s/twemproxy%d\n' "$proxy" "$work" "$proxy"
        done
    } >"$work/haproxy.cfg"
    haproxy -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
    proxies+=($!)
    local begun=$SECONDS
    until [ "$(redis-cli -s "$work/front" get probe 2>&1)" = "" ]; do
        ((SECONDS - begun < 60)) || fail "twemproxy and HAProxy do not answer: $(proxies_words)"
        sleep 0.1
    done
}

# What twemproxy and HAProxy logged that is no start and no end.
proxies_words() {
    cat "$work"/*.log 2>/dev/null | grep -Ev 'nutcracker-[0-9.]+ (built|started)|run, rabbit|dig that hole|New worker' |
        grep -Ei 'error|fail|alert|warn|refused|reset|too many|closed|timed ?out|no server' | head -3 | tr '\n' ' ' || true
}

# What the twemproxies have counted as errors until now: connections that were lost or refused, and requests that were
# not answered.  A load generator's first connection is one: it asks for a server's configuration, which none may.
proxies_errors() {
    local proxy
    if [ ${#proxies[@]} -eq 0 ]; then
        echo 0
        return
    fi
    for ((proxy = 0; proxy < ${#proxies[@]} - 1; proxy++)); do
        cat <"/dev/tcp/127.0.0.1/$((stats_port + proxy))"
    done | grep -Eo '"(client_err|server_ejects|forward_error|server_err|server_timedout|server_eof)": *[0-9]+' |
        awk -F: '{sum += $2} END {print sum + 0}'
}

# All are emptied, also those that this set-up does not use: no more than its own keys are held.
for number in "${!every[@]}"; do
    answer=$(redis-cli -h "${addresses[number % (${#every[@]} / 2) / each]}" -p "${every[number]}" flushall sync)
    [ "$answer" = OK ] || fail "the server at port ${every[number]} cannot be emptied: $answer"
done
if [ "$setup" = baseline ]; then
    front=(-h "${addresses[0]}" -p "${ports[0]}")
else
    start_proxies
    front=(-s "$work/front")
fi

# Every request is answered rightly before any is counted: what was written is read, and lies where it should.
{
    for number in {1..64}; do echo "set check:$number $((number * 7919))"; done
    for number in {1..64}; do echo "get check:$number"; done
    echo "get check:none"
} | redis-cli "${front[@]}" | tr -d '\r' >"$work/answers"
{
    for _ in {1..64}; do echo OK; done
    for number in {1..64}; do echo $((number * 7919)); done
    echo
} | cmp -s - "$work/answers" || fail "requests were answered wrongly: $(tr '\n' ' ' <"$work/answers" | cut -c1-300)"
kept=()
for ((number = 0; number < count; number++)); do
    kept+=("$(ask "$number" dbsize)")
done
printf '{"point": "%s", "servers": %d, "connections": %d, "pipeline": %d, "data_bytes": %d, "keys": %d, ' \
    "$setup" "$count" "$connections" "$pipeline" "$bytes" "$keys"
printf '"seed": %d, "client": "%s", "server": "%s"}\n' "$seed" "$(redis-benchmark --version | head -1)" \
    "$(ask 0 info server | sed -n 's/^redis_version://p')"
printf '{"checked": 64, "kept": [%s]}\n' "$(IFS=,; echo "${kept[*]}")"

load=(redis-benchmark "${front[@]}" -a "$password" -P "$pipeline" -d "$bytes" -r "$keyspace")
"${load[@]}" -t set -c 50 -n $((3 * keyspace)) --seed "$seed" -q >"$work/fill" 2>&1 ||
    fail "the servers cannot be filled: $(tr '\r' '\n' <"$work/fill" | tail -1)"

# A load generator is four processes that share its connections, three of which send GET and one SET: as each has as
# much to do as the others, a processor that is scarce does not shift the mix.
generate() {
    local test number=${#generators[@]}
    for test in get get get set; do
        "${load[@]}" -t "$test" -c $((connections / 4)) -n 2000000000 --seed $(((seed + ++number) % 2147483647)) --csv \
            >"$work/generator$number" 2>&1 &
        generators+=($!)
    done
}

for ((number = 0; number < count; number++)); do
    generate
done

# What the server with a number has done until now: time (us), GET, SET, hits, misses, not done, processor (us).
state() {
    ask "$1" info all | awk -F: '
        /^server_time_usec:/ {time = $2}
        /^used_cpu_(user|sys):/ {cpu += $2 * 1000000}
        /^keyspace_hits:/ {hits = $2}
        /^keyspace_misses:/ {misses = $2}
        /^cmdstat_(get|set):/ {
            split($2, part, /[=,]/)
            calls[$1] = part[2]
            match($2, /rejected_calls=[0-9]+/); bad += substr($2, RSTART + 15, RLENGTH - 15)
            match($2, /failed_calls=[0-9]+/); bad += substr($2, RSTART + 13, RLENGTH - 13)
        }
        END {printf "%d %d %d %d %d %d %d\n", time, calls["cmdstat_get"], calls["cmdstat_set"], hits, misses, bad, cpu}'
}

# Processor time of processes until now, in ticks.
ticks() {
    local process sum=0 fields
    for process; do
        read -r fields <"/proc/$process/stat" || fail "$(words_of "$process")"
        # shellcheck disable=SC2086  # the words behind the name, which is in parentheses
        set -- ${fields##*) }
        sum=$((sum + ${12} + ${13}))
    done
    echo "$sum"
}

# Why a process of ours is no longer there.
words_of() {
    echo "a load generator or proxy ended: $(cat "$work"/generator* 2>/dev/null | tr '\r' '\n' | grep -v '^"' |
        tail -3 | tr '\n' ' ') $(proxies_words)"
}

sleep "$settle"
before=() after=()
errors=$(proxies_errors)
at=${EPOCHREALTIME/./}
driver=$(ticks "${generators[@]}")
proxy=$(ticks "${proxies[@]}")
for ((number = 0; number < count; number++)); do before+=("$(state "$number")"); done
sleep "$seconds"
for ((number = 0; number < count; number++)); do after+=("$(state "$number")"); done
driver=$(($(ticks "${generators[@]}") - driver))
proxy=$(($(ticks "${proxies[@]}") - proxy))
took=$((${EPOCHREALTIME/./} - at))
for process in "${generators[@]}" "${proxies[@]}"; do
    kill -0 "$process" 2>/dev/null || fail "$(words_of "$process")"
done
errors=$(($(proxies_errors) - errors))
[ "$errors" = 0 ] || fail "the twemproxies counted $errors errors: $(proxies_words)"
words=$(proxies_words)
[ -z "$words" ] || fail "twemproxy or HAProxy reports: $words"

for ((number = 0; number < count; number++)); do
    echo "$number ${before[number]} ${after[number]}"
done | awk '{
    seconds = ($9 - $2) / 1000000; gets = $10 - $3; sets = $11 - $4
    printf "{\"server\": %d, \"seconds\": %.6f, \"gets\": %d, \"sets\": %d, \"hits\": %d, \"misses\": %d, ", \
        $1, seconds, gets, sets, $12 - $5, $13 - $6
    printf "\"failed\": %d, \"cpu_seconds\": %.6f, \"rate\": %.6g}\n", $14, ($15 - $8) / 1000000, (gets + sets) / seconds
    total += (gets + sets) / seconds; all += gets + sets; got += gets
} END {printf "{\"total\": %.6g, \"get_share\": %.6g}\n", total, 100 * got / all}'
hertz=$(getconf CLK_TCK)
cpus=$(getconf _NPROCESSORS_ONLN)
awk -v took="$took" -v driver="$driver" -v proxy="$proxy" -v hertz="$hertz" -v cpus="$cpus" \
    -v processes="${#generators[@]}" 'BEGIN {
    took /= 1000000; driver /= hertz; proxy /= hertz
    printf "{\"client\": %.6f, \"cpus\": %d, \"processes\": %d, \"driver_seconds\": %.2f, \"proxy_seconds\": %.2f, ", \
        took, cpus, processes, driver, proxy
    printf "\"driver_share\": %.6g, \"proxy_share\": %.6g}\n", 100 * driver / took / cpus, 100 * proxy / took / cpus
}'
printf '{"end": "%s"}\n' "$setup"
