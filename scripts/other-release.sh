#!/bin/bash
# Installs a package of another release of this distribution.
#
# Usage: other-release.sh PACKAGE [RELEASE]; without RELEASE it tries older ones.  It ends with 1 if
# no release has the package.  The package comes from the host's own sources, with the release
# replaced, and apt checks its signature; apt's settings and lists stay as they are.
set -euo pipefail

package=$1
cd "$(dirname "$0")/.."
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# shellcheck source=/dev/null
. /etc/os-release
case ${2:+given}${ID:-} in
given*) releases=("$2") ;;
debian) releases=(bookworm) ;;
ubuntu) releases=(noble jammy) ;;
*) exit 1 ;;
esac

# shellcheck source=scripts/scratch.sh
. scripts/scratch.sh
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
options=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=-
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o Dir::Cache::pkgcache=
    -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)

# Prints the host's package sources with another release in place of its own; fails with a message
# if they cannot be read.  Usage: print_sources RELEASE
print_sources() {
    python3 -S -c '
import sys
from strata.util.errors import UserError
from strata.host import distribution
try:
    image = {"distribution": sys.argv[1], "release": sys.argv[2]}
    print(distribution.format_sources_list(image, None, distribution.read_os_release()))
except UserError as error:
    sys.exit(f"setup: {error}")
' "$ID" "$1"
}

for release in "${releases[@]}"; do
    if [ "$release" = "${VERSION_CODENAME:-}" ] ||
        ! print_sources "$release" >"$work/sources.list"; then
        continue
    fi
    # The update fails if one source lacks the release; another may have the package.
    "${root[@]}" apt-get "${options[@]}" update >&2 || true
    (cd "$work" && "${root[@]}" apt-get "${options[@]}" download "$package" >&2) || continue
    files=("$work/$package"_*.deb)
    [ -e "${files[0]}" ] || continue
    echo "setup: installing $package of $release," \
        "which ${PRETTY_NAME:-this release} does not have" >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        install "${files[0]}" >/dev/null
    exit 0
done
exit 1
