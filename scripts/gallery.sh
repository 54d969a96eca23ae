#!/bin/bash
# Makes the small run of docs/gallery.md anew, from the last commit of this checkout: scripts/gallery.sh.  It measures,
# and leaves its archive in gallery.zip, which goes to a release.
set -euo pipefail
cd "$(dirname "$0")/.."

project=$PWD
if ! git diff --quiet HEAD; then
    echo "gallery: files differ from the last commit, which is measured: commit them first" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet . "$work/strata"
cd "$work/strata"
make setup
# The page of docs/tutorial.md as words, so that the source is that of the commit.
.venv/bin/snakemake --cores 1 --config 'only={environments: [native, docker], workloads: [stream, randomaccess]}' \
    repetitions=5 'quiet={action: flag}' measure=true -- archive
.venv/bin/python - <<'END'
import glob
import json
import sys

runs = sorted(glob.glob("results/raw/*/*/*.json"))
disturbed = [name for name in runs if json.load(open(name))["quiet"]["flags"]]
facts = json.load(open("results/plan.json"))["source"]
if disturbed or len(runs) != 20:
    sys.exit(f"gallery: {len(runs)} runs, disturbed: {', '.join(disturbed) or 'none'}; try again on a quiet machine")
if facts["changed"]:
    sys.exit(f"gallery: the source is not that of commit {facts['revision']}")
END
.venv/bin/python -m strata verify archive.zip
mv archive.zip "$project/gallery.zip"
echo "gallery: gallery.zip is of commit $(git rev-parse HEAD)" >&2
