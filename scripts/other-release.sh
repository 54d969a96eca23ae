#!/bin/bash
# Installs a package as another release of the same distribution has it: from the host's own sources, with the release
# replaced, and checked by apt as every package is.
# What apt is set to stays as it is: the other release is asked apart from it, once.
# Usage: other-release.sh PACKAGE [RELEASE]; without RELEASE one of the older ones.  Ends with 1 where none has it.
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
apart=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)

# The host's sources with another release in place of its own.
sources() {
    python3 -S -c '
import sys
from strata.util.errors import UserError
from strata.host import distribution
try:
    print(distribution.sources({"distribution": sys.argv[1], "release": sys.argv[2]}, None, distribution.os_release()))
except UserError as error:
    sys.exit(f"setup: {error}")
' "$ID" "$1"
}

for other in "${releases[@]}"; do
    if [ "$other" = "${VERSION_CODENAME:-}" ] || ! sources "$other" >"$work/sources.list"; then
        continue
    fi
    # One source of several may lack the other release; whether the package came is what counts.
    "${root[@]}" apt-get "${apart[@]}" update >&2 || true
    (cd "$work" && "${root[@]}" apt-get "${apart[@]}" download "$package" >&2) || continue
    found=("$work/$package"_*.deb)
    [ -e "${found[0]}" ] || continue
    echo "setup: installing $package of $other, which ${PRETTY_NAME:-this release} does not have" >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${found[0]}" >/dev/null
    exit 0
done
exit 1
