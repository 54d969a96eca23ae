#!/bin/sh
# Turns the base root filesystem into the image: compiles the workloads, lists the versions of their
# tools, and removes what differs from build to build.
set -eu

target=/opt/strata
mkdir -p "$target/workloads" "$target/bin" /data
for file in /tmp/workloads/common/*.sh; do
    install -m 755 "$file" "$target/bin/$(basename "$file" .sh)"
done
gcc -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$target/bin/listen.so" \
    /tmp/workloads/common/src/listen.c
for folder in /tmp/workloads/*/; do
    name=$(basename "$folder")
    case $name in common | kit) continue ;; esac
    echo "building $name"
    mkdir -p "$target/workloads/$name"
    if [ -e "$folder/build.sh" ]; then
        (cd "$folder" && bash build.sh "$target/workloads/$name")
    else
        # A workload that has only scripts.
        find "$folder" -maxdepth 1 \( -name '*.sh' -o -name '*.py' \) \
            -exec install -m 755 -t "$target/workloads/$name" {} +
    fi
done

# Every cell reads this list: the versions of the packages that workloads name, and of the libraries
# that their programs use.
# shellcheck disable=SC2046  # each name is a word of its own
dpkg-query --show --showformat '${Package} ${Version}\n' $(cat /tmp/workloads/packages) \
    libc6 liblzma5 '*openblas0*' 2>/dev/null | sort -u | awk 'NF == 2' >"$target/packages"

# A fixed day of the passwords' last change: the same files must come out on any day.
sed -i 's/^\([^:]*:[^:]*\):[0-9]*:/\1:20000:/' /etc/shadow
cp -p /etc/shadow /etc/shadow-

rm -rf /tmp/workloads /etc/apt/sources.list /etc/apt/sources.list.d/*
rm -rf /etc/apt/apt.conf.d/99mmdebstrap /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
rm -rf /var/cache/ldconfig/aux-cache
