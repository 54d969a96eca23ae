#!/bin/bash
# Checks that the last commit can be released, and writes to release/ the files that a person then
# publishes, with the commands for it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Ends the script with status 1 and a message.  Usage: fail WORD…
fail() {
    echo "release: $*" >&2
    exit 1
}

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' strata/__init__.py)
[ -z "$(git status --porcelain)" ] ||
    fail "the tree is not clean: commit or remove the files that git status names"
if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null; then
    fail "v$version is tagged already"
fi
grep -q "^## \[$version\] – [0-9-]*$" CHANGELOG.md ||
    fail "CHANGELOG.md has no dated section [$version]"
[ -e gallery.zip ] || fail "gallery.zip is missing: make gallery"
make test
for archive in gallery.zip docs/small.zip; do
    .venv/bin/python -m strata verify "$archive"
    python3 -S strata/util/trees.py release/again
    .venv/bin/python -m strata rebuild "$archive" --to release/again
done
python3 -S strata/util/trees.py release
mkdir release
git archive --format=tar.gz --prefix="strata-$version/" \
    --output="release/strata-$version.tar.gz" HEAD
cp gallery.zip "release/strata-$version-gallery.zip"
awk -v version="[$version]" '/^## / { is_wanted = $2 == version; next } is_wanted' \
    CHANGELOG.md >release/notes.md
(cd release && sha256sum -- * >SHA256SUMS)
cat >release/publish.txt <<END
git tag --annotate v$version --message "Strata $version" $(git rev-parse HEAD)
git push origin v$version
Make a release of the tag on the code host, with notes.md as its text and the other files attached.
Then, by hand: DOI and addresses into CITATION.cff and README (CONTRIBUTING.md, "Release").
END
cat release/publish.txt
