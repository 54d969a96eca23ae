#!/bin/bash
# Installs what is missing: system packages, a virtual environment with pinned Python packages, a Docker daemon.
# Usage: setup.sh paper|run|test; paper: what making a paper of measured runs needs, no Docker.
# Asks nothing, says what it does, and is quick where all is there.
set -euo pipefail

purpose=${1:-run}
cd "$(dirname "$0")/.."
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

say() { echo "setup: $*" >&2; }

# Packages for environments that are no condition, and that this distribution has not.
without=
# What such packages are for, by the first word of their lines.
declare -A optional=([vm]="environments with a virtual machine" [gvisor]="environments with gVisor")

# Whether apt knows a package here.
known() { [ -n "$(apt-cache madison "$1" 2>/dev/null || true)" ]; }

# Packages that this release has no more, one by one from an older one.
install_older() {
    local package
    for package in "$@"; do
        if ! scripts/older-package.sh "$package"; then
            say "$package is not in this distribution, nor in an older release of it that its sources hold"
            if [ "$package" = packer ]; then
                say "get it from https://developer.hashicorp.com/packer/install, put it on the path, and run this again"
            fi
            exit 1
        fi
    done
}

# The lines of packages.txt whose thing is not there, as "thing package".
missing() {
    local r_packages
    r_packages=" $(Rscript -e 'cat(rownames(installed.packages(priority = "NA")))' 2>/dev/null || true) "
    while read -r kind thing package; do
        if [[ $kind = "#" || ($kind = test && $purpose != test) || ($kind = run && $purpose = paper) ]]; then
            continue
        fi
        if [[ -n ${optional[$kind]:-} && ($purpose = paper || " $without " == *" $package "*) ]]; then
            continue
        fi
        case $thing in
        r:*) [[ $r_packages == *" ${thing#r:} "* ]] && continue ;;
        /*) [ -e "$thing" ] && continue ;;
        tex:*) [ -n "$(kpsewhich "${thing#tex:}" 2>/dev/null || true)" ] && continue ;;
        *) [ -n "$(PATH=$PATH:/usr/sbin:/sbin type -P "$thing" || true)" ] && continue ;;
        esac
        echo "$thing $package"
    done <scripts/packages.txt
}

install_packages() {
    local lacking packages package here=() older=()
    lacking=$(missing)
    [ -n "$lacking" ] || return 0
    packages=$(cut -d ' ' -f 2 <<<"$lacking" | sort -u | tr '\n' ' ')
    if ! type -P apt-get >/dev/null; then
        # These are no condition: without their programs the other environments are measured.
        while read -r kind _ package; do
            if [ -n "${optional[$kind]:-}" ]; then without="$without $package"; fi
        done <scripts/packages.txt
        if [ -z "$(missing)" ]; then
            while read -r thing package; do
                say "$package is missing, and this distribution has no apt; environments that need $thing are not available"
            done <<<"$lacking"
            return 0
        fi
        say "this distribution has no apt; install what gives these, then run this again:"
        while read -r thing package; do
            echo "  $thing   (Debian: $package)" >&2
        done <<<"$lacking"
        exit 1
    fi
    if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        say "these packages are missing and sudo asks for a password; run: sudo apt-get install $packages"
        exit 1
    fi
    say "installing $packages"
    export DEBIAN_FRONTEND=noninteractive
    "${root[@]}" apt-get -qq update
    while read -r kind _ package; do
        if [ -n "${optional[$kind]:-}" ] && [ "$purpose" != paper ] && ! known "$package"; then
            without="$without $package"
            say "$package is not in this distribution; ${optional[$kind]} will be shown as not available"
        fi
    done <scripts/packages.txt
    if [ -n "$without" ]; then
        packages=$(missing | cut -d ' ' -f 2 | sort -u | tr '\n' ' ')
        [ -n "$packages" ] || return 0
    fi
    for package in $packages; do
        if known "$package"; then here+=("$package"); else older+=("$package"); fi
    done
    # First what may be wanting altogether: nothing is installed for a run that cannot be.
    install_older "${older[@]}"
    if [ ${#here[@]} -gt 0 ]; then
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${here[@]}" >/dev/null
    fi
    # From Debian 13 on the client of Docker is a package of its own.
    if [ "$purpose" != paper ] && ! type -P docker >/dev/null; then
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install docker-cli >/dev/null
    fi
    lacking=$(missing)
    if [ -n "$lacking" ]; then
        say "still missing after the installation: $(cut -d ' ' -f 1 <<<"$lacking" | tr '\n' ' ')"
        exit 1
    fi
}

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    say "Python 3.11 or newer is needed; found $(python3 --version 2>&1 || echo none)"
    exit 1
}

install_python_packages() {
    local list=requirements.txt python wanted
    [ "$purpose" != test ] || list=requirements-test.txt
    wanted=$(cat requirements.txt "$list" | sha256sum | cut -c -32)
    if grep -qs "$wanted" .venv/strata-stamp; then
        return 0
    fi
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        say "installing python3-venv"
        "${root[@]}" apt-get -qq update
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install python3-venv >/dev/null
    fi
    say "installing Python packages into .venv"
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 --requirement "$list"
    # The tests' list holds the run's: having it is having both.
    {
        echo "$wanted"
        [ "$purpose" != test ] || cat requirements.txt requirements.txt | sha256sum | cut -c -32
    } >.venv/strata-stamp
}

# What looks at the papers' pages, as it is in no package of Python.
install_axe() {
    [ ! -e .venv/node_modules/axe-core/axe.min.js ] || return 0
    npm install --silent --no-save --no-audit --no-fund --prefix .venv axe-core@4.11.4
}

install_packages
install_python_packages
[ "$purpose" != test ] || install_axe
[ "$purpose" = paper ] || scripts/dockerd.sh
