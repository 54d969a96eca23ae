#!/bin/bash
# Builds the container image strata-paper:VERSION, in which archives are verified and rebuilt.
#
# It holds packages of the distribution, and the Python packages of requirements.txt.  Needs Docker
# and mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' strata/__init__.py)
# shellcheck source=scripts/scratch.sh
. scripts/scratch.sh
# Without root, mmdebstrap fills the folder as another user of a namespace.
chmod 0755 "$work"
.venv/bin/python - >"$work/sources.list" <<'END'
from strata.host import distribution

host = distribution.read_os_release()
image = {"distribution": host["ID"], "release": host["VERSION_CODENAME"]}
print(distribution.format_sources_list(image, None, host), end="")
END
mapfile -t packages < <(awk '$1 == "paper" { print $3 }' scripts/packages.txt | sort -u)
mapfile -t options < <(apt-config dump | grep '^Acquire::' | grep -v '"";' | sed 's/^/--aptopt=/')
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
include=$(IFS=, && echo "${packages[*]},python3-venv,ca-certificates")
.venv/bin/python -m pip download --quiet --require-hashes --requirement requirements.txt \
    --dest "$work/wheels"
cp requirements.txt "$work/wheels"
# git takes a mounted checkout, which belongs to another user, only from safe.directory.
# shellcheck disable=SC2016  # the hooks' own shell knows the folder
TMPDIR=$work mmdebstrap --variant=minbase "--include=$include" "${options[@]}" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    "--customize-hook=copy-in '$work/wheels' /tmp" \
    --customize-hook='chroot "$1" python3 -m venv /opt/venv' \
    --customize-hook='chroot "$1" /opt/venv/bin/pip install --quiet --no-index \
        --find-links /tmp/wheels --require-hashes --requirement /tmp/wheels/requirements.txt' \
    --customize-hook='chroot "$1" git config --system --add safe.directory "*"' \
    --customize-hook='rm -rf "$1/tmp/wheels"' \
    "$release" "$work/base.tar" "$work/sources.list"
path=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin
docker import --change "ENV PATH=$path PYTHONDONTWRITEBYTECODE=1 LANG=C.UTF-8" \
    --change 'WORKDIR /strata' --change 'ENTRYPOINT ["python3", "-m", "strata"]' \
    "$work/base.tar" "strata-paper:$version" >/dev/null
echo "image-paper: strata-paper:$version" >&2
