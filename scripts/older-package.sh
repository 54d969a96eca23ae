#!/bin/bash
# Installs a package that this release of the distribution has no more, as an older release of the same distribution
# has it: from the host's own sources, with the release replaced, and checked by apt as every package is.
# What apt is set to stays as it is: the older release is asked apart from it, once.
# Usage: older-package.sh PACKAGE; ends with 1 where no older release that is known here has it.
set -euo pipefail

package=$1
cd "$(dirname "$0")/.."
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

# shellcheck source=/dev/null
. /etc/os-release
case ${ID:-} in
debian) releases=(bookworm) ;;
ubuntu) releases=(noble jammy) ;;
*) exit 1 ;;
esac

work=$(mktemp -d)
trap '"${root[@]}" rm -rf -- "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
apart=(-qq -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)

# The host's sources with another release in place of its own.
sources() {
    python3 -S -c '
import sys
from strata.base.errors import UserError
from strata.host import distribution
try:
    print(distribution.sources({"distribution": sys.argv[1], "release": sys.argv[2]}, None, distribution.os_release()))
except UserError as error:
    sys.exit(f"setup: {error}")
' "$ID" "$1"
}

for older in "${releases[@]}"; do
    if [ "$older" = "${VERSION_CODENAME:-}" ] || ! sources "$older" >"$work/sources.list"; then
        continue
    fi
    # One source of several may lack the older release; whether the package came is what counts.
    "${root[@]}" apt-get "${apart[@]}" update >&2 || true
    (cd "$work" && "${root[@]}" apt-get "${apart[@]}" download "$package" >&2) || continue
    found=("$work/$package"_*.deb)
    [ -e "${found[0]}" ] || continue
    echo "setup: $package is not in ${PRETTY_NAME:-this release}; installing that of $older" >&2
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${found[0]}" >/dev/null
    exit 0
done
exit 1
