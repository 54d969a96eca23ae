#!/bin/bash
# Installs what is missing: system packages, pinned Python packages in .venv, and a Docker daemon.
#
# Usage: setup.sh paper|run|test; `paper` is for making papers of measured runs, without Docker.
# It asks nothing, prints what it does, and takes seconds if nothing is missing.
set -euo pipefail

purpose=${1:-run}
if [ $# -gt 1 ]; then
    echo "setup: takes one word, not $#; type scripts/setup.sh paper, run or test" >&2
    exit 2
fi
case $purpose in
paper | run | test) ;;
-h | --help)
    sed -n '2,$ { /^#/!q; s/^# \{0,1\}//p }' "$0"
    exit
    ;;
*)
    echo "setup: '$purpose' is no purpose; type scripts/setup.sh paper, run or test" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

say() { echo "setup: $*" >&2; }

# The purpose of packages that may be missing, by the first word of their lines in packages.txt.
declare -A optional=(
    [vm]="environments with a virtual machine" [gvisor]="environments with gVisor")

install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        install "$@" >/dev/null
}

# Prints R packages and fonts that are installed for all users.  A user's own do not count, since
# strata/util/programs.py starts R without them.
list_of_r() {
    env -i "PATH=$PATH" HOME=/nonexistent LC_ALL=C.UTF-8 Rscript --vanilla -e '
        cat("", rownames(installed.packages(priority = "NA")), "")
        cat(basename(systemfonts::system_fonts()[["path"]]), "")' 2>/dev/null || true
}

# Prints the lines of packages.txt whose program, file, R package or font is missing.
list_missing() {
    local installed
    installed=$(list_of_r)
    while read -r kind thing package; do
        case $kind:$purpose in
        "#":* | test:run | *:paper) [ "$kind" = paper ] || continue ;;
        esac
        case $thing in
        r:* | font:*) [[ "$installed " == *" ${thing#*:} "* ]] && continue ;;
        /*) [ -e "$thing" ] && continue ;;
        tex:*) [ -n "$(kpsewhich "${thing#tex:}" 2>/dev/null || true)" ] && continue ;;
        *) [ -n "$(PATH=$PATH:/usr/sbin:/sbin type -P "$thing" || true)" ] && continue ;;
        esac
        echo "$kind $thing $package"
    done <scripts/packages.txt
}

is_known() { [ -n "$(apt-cache madison "$1" 2>/dev/null || true)" ]; }

# Whether apt has to read its sources again for LINES of packages.txt.  It need not if it has read
# them once, and knows none of the packages, which are all optional.
is_worth_update() {
    local kind package
    is_known bash || return 0
    while read -r kind _ package; do
        if [ -z "${optional[$kind]:-}" ] || is_known "$package"; then return 0; fi
    done <<<"$1"
    return 1
}

# Prints why packages cannot be installed here; nothing if they can.
find_trouble() {
    if ! type -P apt-get >/dev/null; then
        echo "this distribution has no apt"
    elif ! "${root[@]}" true 2>/dev/null; then
        echo "this user is not root, and has no sudo without a password"
    fi
}

install_packages() {
    local lines kind thing package available=() needed=0 trouble
    lines=$(list_missing)
    [ -n "$lines" ] || return 0
    trouble=$(find_trouble)
    if [ -n "$trouble" ]; then
        say "$trouble; install the packages that hold these, then run this again:"
        while read -r kind thing package; do
            [ -n "${optional[$kind]:-}" ] || needed=1
            echo "  $thing   (Debian: $package${optional[$kind]:+; for ${optional[$kind]}})" >&2
        done <<<"$lines"
        return "$needed"
    fi
    if is_worth_update "$lines"; then "${root[@]}" apt-get -qq update; fi
    # Packages that this release lacks come first: without one of them nothing has to be installed.
    while read -r kind _ package; do
        if is_known "$package"; then
            available+=("$package")
        elif [ -n "${optional[$kind]:-}" ]; then
            say "$package is not in this distribution;" \
                "${optional[$kind]} will be shown as not available"
        elif ! scripts/other-release.sh "$package" </dev/null; then
            say "$package is neither in this release of the distribution nor in an older one"
            [ "$package" != packer ] ||
                say "get it from https://developer.hashicorp.com/packer/install," \
                    "put it on the path, and run this again"
            return 1
        fi
    done <<<"$lines"
    if [ ${#available[@]} -gt 0 ]; then
        say "installing ${available[*]}"
        install "${available[@]}"
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
        say "$PWD/.venv lacks Python packages and cannot be written here;" \
            "clone the project to a folder that you may write to"
        exit 1
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        if [ -n "$(find_trouble)" ]; then
            say "$(find_trouble);" \
                "install the venv module of Python (Debian: python3-venv), then run this again"
            exit 1
        fi
        say "installing python3-venv"
        "${root[@]}" apt-get -qq update
        install python3-venv
    fi
    say "installing Python packages into .venv"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
        --requirement "$list"
    # The command `strata` of this checkout.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
        --no-build-isolation --editable .
    # The list for tests contains the list for runs: one installation serves both purposes.
    for name in requirements.txt "$list"; do
        cat requirements.txt "$name" | sha256sum
    done >.venv/strata-stamp
}

# Whether gVisor is that of Debian 12, which lacks Systrap.  That of Debian 13 runs on Debian 12,
# and catches system calls many times as fast.
has_old_gvisor() {
    type -P runsc >/dev/null && grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release &&
        [[ $(runsc flags 2>&1 || true) != *systrap* ]]
}

install_packages
if [ "$purpose" != paper ] && has_old_gvisor && [ -z "$(find_trouble)" ]; then
    scripts/other-release.sh runsc trixie ||
        say "gVisor of Debian 13 cannot be installed here; that of Debian 12 stays"
fi
install_python_packages
if [ "$purpose" = test ] && [ ! -e .venv/node_modules/axe-core/axe.min.js ]; then
    # axe-core, which checks the accessibility of web pages, is in no package of Python.
    npm install --silent --no-save --no-audit --no-fund --prefix .venv axe-core@4.11.4
fi
[ "$purpose" = paper ] || scripts/dockerd.sh
