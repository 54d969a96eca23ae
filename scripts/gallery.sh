#!/bin/bash
# Measures the small experiment of docs/gallery.md by the last commit of this checkout.
#
# It writes docs/small.zip, which names that commit instead of holding the source; and if nothing
# disturbed the run, gallery.zip for a release, which holds everything.
set -euo pipefail
cd "$(dirname "$0")/.."

project=$PWD
if ! git diff --quiet HEAD; then
    echo "gallery: files differ from the last commit, which is measured: commit them first" >&2
    exit 1
fi
# shellcheck source=scripts/scratch.sh
. scripts/scratch.sh
git clone --quiet . "$work/strata"
cd "$work/strata"
make setup
# The experiment of docs/tutorial.md.  A configuration file would change the commit's source.
.venv/bin/snakemake --cores 1 --config \
    'only={environments: [native, docker], workloads: [stream, randomaccess]}' repetitions=5 \
    'interference={action: flag}' measure=true -- archive
.venv/bin/python -m strata archive --without-source --out small.zip
report=$(.venv/bin/python -m strata verify archive.zip 2>&1) || { echo "$report" && exit 1; }
echo "$report"
if grep -q "note:" <<<"$report"; then
    echo "gallery: the source or its records are not those of one clean commit" >&2
    exit 1
fi
mv small.zip "$project/docs/small.zip"
echo "gallery: docs/small.zip is of commit $(git rev-parse HEAD)" >&2
disturbed=$({ grep -L '"flags": \[\]' results/raw/*/*/*.json || true; } | wc -l)
if [ "$disturbed" != 0 ]; then
    echo "gallery: $disturbed runs were disturbed, as the paper marks: no gallery.zip;" \
        "try again when nothing else uses the machine" >&2
    exit 1
fi
mv archive.zip "$project/gallery.zip"
echo "gallery: gallery.zip is of the same runs" >&2
