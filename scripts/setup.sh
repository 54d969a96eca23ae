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

# What packages are for that are no condition, by the first word of their lines.
declare -A optional=([vm]="environments with a virtual machine" [gvisor]="environments with gVisor")

install() { "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" >/dev/null; }

# The R packages and the fonts that there are for everybody, as strata/util/programs.py starts R: a user's own do not count.
of_r() {
    env -i "PATH=$PATH" HOME=/nonexistent LC_ALL=C.UTF-8 Rscript --vanilla -e '
        cat("", rownames(installed.packages(priority = "NA")), "")
        cat(basename(systemfonts::system_fonts()[["path"]]), "")' 2>/dev/null || true
}

# The lines of packages.txt whose thing is not there.
missing() {
    local there
    there=$(of_r)
    while read -r kind thing package; do
        case $kind:$purpose in
        "#":* | test:run | *:paper) [ "$kind" = paper ] || continue ;;
        esac
        case $thing in
        r:* | font:*) [[ "$there " == *" ${thing#*:} "* ]] && continue ;;
        /*) [ -e "$thing" ] && continue ;;
        tex:*) [ -n "$(kpsewhich "${thing#tex:}" 2>/dev/null || true)" ] && continue ;;
        *) [ -n "$(PATH=$PATH:/usr/sbin:/sbin type -P "$thing" || true)" ] && continue ;;
        esac
        echo "$kind $thing $package"
    done <scripts/packages.txt
}

is_known() { [ -n "$(apt-cache madison "$1" 2>/dev/null || true)" ]; }

# Whether apt has to read its sources again for these lines of packages.txt: not where all of them are optional and apt,
# which has read its sources once, knew none.
is_worth_update() {
    local kind package
    is_known bash || return 0
    while read -r kind _ package; do
        if [ -z "${optional[$kind]:-}" ] || is_known "$package"; then return 0; fi
    done <<<"$1"
    return 1
}

# Why packages cannot be installed here; nothing where they can.
find_trouble() {
    if ! type -P apt-get >/dev/null; then
        echo "this distribution has no apt"
    elif ! "${root[@]}" true 2>/dev/null; then
        echo "this user is not root, and has no sudo without a password"
    fi
}

install_packages() {
    local lacking kind thing package here=() needed=0 trouble
    lacking=$(missing)
    [ -n "$lacking" ] || return 0
    trouble=$(find_trouble)
    if [ -n "$trouble" ]; then
        say "$trouble; install what gives these, then run this again:"
        while read -r kind thing package; do
            [ -n "${optional[$kind]:-}" ] || needed=1
            echo "  $thing   (Debian: $package${optional[$kind]:+; for ${optional[$kind]}})" >&2
        done <<<"$lacking"
        return "$needed"
    fi
    if is_worth_update "$lacking"; then "${root[@]}" apt-get -qq update; fi
    # First what may be wanting altogether: nothing is installed for a run that cannot be.
    while read -r kind _ package; do
        if is_known "$package"; then
            here+=("$package")
        elif [ -n "${optional[$kind]:-}" ]; then
            say "$package is not in this distribution; ${optional[$kind]} will be shown as not available"
        elif ! scripts/other-release.sh "$package" </dev/null; then
            say "$package is not in this distribution, nor in an older release of it that its sources hold"
            [ "$package" != packer ] || say "get it from https://developer.hashicorp.com/packer/install, put it on the path, and run this again"
            return 1
        fi
    done <<<"$lacking"
    if [ ${#here[@]} -gt 0 ]; then
        say "installing ${here[*]}"
        install "${here[@]}"
    fi
    # From Debian 13 on the client of Docker is a package of its own.
    [ "$purpose" = paper ] || type -P docker >/dev/null || install docker-cli
}

install_python_packages() {
    local list=requirements.txt name
    [ "$purpose" != test ] || list=requirements-test.txt
    grep -qs "$(cat requirements.txt "$list" | sha256sum)" .venv/strata-stamp && return 0
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        say "Python 3.11 or newer is needed; found $(python3 --version 2>&1 || echo none)"
        exit 1
    fi
    if ! [ -w . ] || { [ -e .venv ] && ! [ -w .venv ]; }; then
        say "$PWD/.venv lacks Python packages and cannot be written here; clone the project to a folder that you may write to"
        exit 1
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        if [ -n "$(find_trouble)" ]; then
            say "$(find_trouble); install the venv module of Python (Debian: python3-venv), then run this again"
            exit 1
        fi
        say "installing python3-venv"
        "${root[@]}" apt-get -qq update
        install python3-venv
    fi
    say "installing Python packages into .venv"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 --requirement "$list"
    # The command `strata`, of this checkout.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
    # The tests' list holds the run's: having it is having both.
    for name in requirements.txt "$list"; do cat requirements.txt "$name" | sha256sum; done >.venv/strata-stamp
}

install_packages
# gVisor of Debian 12 knows no Systrap, which is many times as fast as what it has; that of Debian 13 runs there.
# (All that it prints is read: under pipefail a reader that leaves early makes a good command fail, at random.)
if [ "$purpose" != paper ] && [ -z "$(find_trouble)" ] && type -P runsc >/dev/null && grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release &&
    [[ $(runsc flags 2>&1 || true) != *systrap* ]]; then
    scripts/other-release.sh runsc trixie || say "gVisor of Debian 13 is not to be had here; that of Debian 12 stays"
fi
install_python_packages
if [ "$purpose" = test ] && [ ! -e .venv/node_modules/axe-core/axe.min.js ]; then
    # What looks at the papers' pages, as it is in no package of Python.
    npm install --silent --no-save --no-audit --no-fund --prefix .venv axe-core@4.11.4
fi
[ "$purpose" = paper ] || scripts/dockerd.sh
