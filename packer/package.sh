#!/bin/bash
# Takes the container image's files out of Docker: OUTPUT/tree (for native runs), tree.tar, image.tar (for Docker in a
# machine), and where BOX is yes OUTPUT/box, of the same files.
set -euo pipefail

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

mkdir -p "$OUTPUT/tree"
docker save --output "$OUTPUT/image.tar" "$TAG"
container=$(docker create "$TAG" true)
trap 'docker rm "$container" >/dev/null' EXIT
docker export --output "$OUTPUT/tree.tar" "$container"
# By the first systemd would take a machine for a container; the second is Packer's.
"${root[@]}" tar -C "$OUTPUT/tree" --numeric-owner --exclude=.dockerenv --exclude=packer-files -xpf "$OUTPUT/tree.tar"
if [ "$BOX" = yes ]; then
    "${root[@]}" packer/box.sh "$OUTPUT/tree" "$OUTPUT/image.tar" "$OUTPUT/box"
fi
