#!/bin/bash
# Builds the container image strata-paper:VERSION, in which archives are verified and their papers made again, of the
# distribution's packages and the Python packages of requirements.txt.  Needs Docker, Packer and mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' strata/__init__.py)
work=$(mktemp -d)
trap 'rm -rf "$work"; docker image rm --force strata-paper-base >/dev/null 2>&1 || true' EXIT
.venv/bin/python - >"$work/sources.list" <<'END'
from strata.host import distribution

host = distribution.os_release()
print(distribution.sources({"distribution": host["ID"], "release": host["VERSION_CODENAME"]}, None, host), end="")
END
mapfile -t packages < <(awk '$1 == "paper" { print $3 }' scripts/packages.txt | sort -u)
mapfile -t options < <(apt-config dump | grep '^Acquire::' | grep -v '"";' | sed 's/^/--aptopt=/')
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
include=$(IFS=, && echo "${packages[*]},python3-venv,ca-certificates")
mmdebstrap --variant=minbase "--include=$include" "${options[@]}" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    "$release" "$work/base.tar" "$work/sources.list"
docker import "$work/base.tar" strata-paper-base:latest >/dev/null
rm "$work/base.tar"
mkdir "$work/wheels"
.venv/bin/python -m pip download --quiet --require-hashes --requirement requirements.txt --dest "$work/wheels"
cp requirements.txt "$work/wheels"
packer build -color=false -var base=strata-paper-base:latest -var "tag=strata-paper:$version" \
    -var "wheels=$work/wheels" packer/paper/paper.pkr.hcl
echo "image-paper: strata-paper:$version" >&2
