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
    echo "setup: '$purpose' is not a purpose; type scripts/setup.sh paper, run or test" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# Prints a message.  Usage: print_message WORD…
print_message() { echo "setup: $*" >&2; }

# What needs the packages that may be missing, by the first word of their lines in packages.txt.
declare -A optional=(
    [vm]="environments with a virtual machine" [gvisor]="environments with gVisor")

# Installs packages of the distribution.  Usage: run_apt_install PACKAGE…
run_apt_install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        install "$@" >/dev/null
}

# Prints the R packages and the files of fonts that are installed for all users, in one line with a
# space around each; nothing without R.  A user's own do not count, since strata/util/programs.py
# starts R without them.
list_r_packages() {
    env -i "PATH=$PATH" HOME=/nonexistent LC_ALL=C.UTF-8 Rscript --vanilla -e '
        cat("", rownames(installed.packages(priority = "NA")), "")
        cat(basename(systemfonts::system_fonts()[["path"]]), "")' 2>/dev/null || true
}

# Prints the lines "KIND ITEM PACKAGE" of packages.txt for this purpose whose item is missing: an R
# package (r:), a file of a font or of TeX (font:, tex:), a path, or a program.
list_missing() {
    local installed kind item package
    installed=$(list_r_packages)
    while read -r kind item package; do
        # Comments, and packages that this purpose does not need; all purposes need those of papers.
        case $kind:$purpose in
        "#":* | test:run | *:paper) [ "$kind" = paper ] || continue ;;
        esac
        case $item in
        r:* | font:*) [[ "$installed " == *" ${item#*:} "* ]] && continue ;;
        /*) [ -e "$item" ] && continue ;;
        tex:*) [ -n "$(kpsewhich "${item#tex:}" 2>/dev/null || true)" ] && continue ;;
        *) [ -n "$(PATH=$PATH:/usr/sbin:/sbin type -P "$item" || true)" ] && continue ;;
        esac
        echo "$kind $item $package"
    done <scripts/packages.txt
}

# Succeeds if apt knows a package.  Usage: is_known PACKAGE
is_known() { [ -n "$(apt-cache madison "$1" 2>/dev/null || true)" ]; }

# Succeeds if apt has to read its sources again for LINES of packages.txt.  It need not if it has
# read them once (it knows bash), and knows none of the packages, which are all optional.
# Usage: needs_update LINES
needs_update() {
    local kind package
    is_known bash || return 0
    while read -r kind _ package; do
        if [ -z "${optional[$kind]:-}" ] || is_known "$package"; then return 0; fi
    done <<<"$1"
    return 1
}

# Prints a clause that says why packages cannot be installed here; nothing if they can.
find_obstacle() {
    if ! type -P apt-get >/dev/null; then
        echo "this distribution has no apt"
    elif ! "${root[@]}" true 2>/dev/null; then
        echo "this user is not root, and has no sudo without a password"
    fi
}

# Installs what list_missing prints, or where this is not possible prints it for the user; fails if
# a package that is not optional is missing in the end.
install_packages() {
    local missing kind item package available=() status=0 obstacle
    missing=$(list_missing)
    [ -n "$missing" ] || return 0
    obstacle=$(find_obstacle)
    if [ -n "$obstacle" ]; then
        print_message "$obstacle; install the packages that hold these, then run this again:"
        while read -r kind item package; do
            [ -n "${optional[$kind]:-}" ] || status=1
            echo "  $item   (Debian: $package${optional[$kind]:+; for ${optional[$kind]}})" >&2
        done <<<"$missing"
        return "$status"
    fi
    if needs_update "$missing"; then "${root[@]}" apt-get -qq update; fi
    # Packages that this release lacks come first: without one of them nothing has to be installed.
    while read -r kind _ package; do
        if is_known "$package"; then
            available+=("$package")
        elif [ -n "${optional[$kind]:-}" ]; then
            print_message "$package is not in this distribution;" \
                "${optional[$kind]} will be shown as not available"
        elif ! scripts/other-release.sh "$package" </dev/null; then
            print_message "$package is neither in this release of the distribution" \
                "nor in an older one"
            [ "$package" != packer ] ||
                print_message "get it from https://developer.hashicorp.com/packer/install," \
                    "put it on the path, and run this again"
            return 1
        fi
    done <<<"$missing"
    if [ ${#available[@]} -gt 0 ]; then
        print_message "installing ${available[*]}"
        run_apt_install "${available[@]}"
    fi
    # From Debian 13 on the client of Docker is a separate package.
    [ "$purpose" = paper ] || type -P docker >/dev/null || run_apt_install docker-cli
}

# Installs the Python packages of the purpose and this checkout's command into .venv, unless the
# digests in .venv/strata-stamp say that it has them.  Ends the script if this is not possible.
install_python_packages() {
    local list=requirements.txt name
    [ "$purpose" != test ] || list=requirements-test.txt
    grep -qs "$(cat requirements.txt "$list" | sha256sum)" .venv/strata-stamp && return 0
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        print_message "Python 3.11 or newer is needed; found $(python3 --version 2>&1 || echo none)"
        exit 1
    fi
    if ! [ -w . ] || { [ -e .venv ] && ! [ -w .venv ]; }; then
        print_message "$PWD/.venv lacks Python packages and cannot be written here;" \
            "clone the project to a folder that you may write to"
        exit 1
    fi
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        if [ -n "$(find_obstacle)" ]; then
            print_message "$(find_obstacle);" \
                "install the venv module of Python (Debian: python3-venv), then run this again"
            exit 1
        fi
        print_message "installing python3-venv"
        "${root[@]}" apt-get -qq update
        run_apt_install python3-venv
    fi
    print_message "installing Python packages into .venv"
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

# Succeeds if gVisor is the package of Debian 12, which lacks Systrap.  Debian 13's runs on Debian
# 12, and catches system calls many times as fast.
has_old_gvisor() {
    type -P runsc >/dev/null && grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release &&
        [[ $(runsc flags 2>&1 || true) != *systrap* ]]
}

install_packages
if [ "$purpose" != paper ] && has_old_gvisor && [ -z "$(find_obstacle)" ]; then
    scripts/other-release.sh runsc trixie ||
        print_message "gVisor of Debian 13 cannot be installed here; that of Debian 12 stays"
fi
install_python_packages
if [ "$purpose" = test ] && [ ! -e .venv/node_modules/axe-core/axe.min.js ]; then
    # axe-core, which checks the accessibility of web pages, is in no package of Python.
    npm install --silent --no-save --no-audit --no-fund --prefix .venv axe-core@4.11.4
fi
[ "$purpose" = paper ] || scripts/dockerd.sh
