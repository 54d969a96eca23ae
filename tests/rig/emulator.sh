#!/bin/sh
# Builds the QEMU that emulates hosts, from the distribution's own source, with the fixes that
# docs/testing.md describes.  The root filesystem has the distribution's QEMU: the built one uses
# its firmware and libraries, and takes its place.
# Called by mmdebstrap.  Usage: emulator.sh ROOT
set -eu
root=$1
target=usr/src/qemu/target/i386/tcg/system

# An edit that finds nothing to change would be a host whose memory is damaged.
mend() {
    cp "$1" "$1.orig"
    sed -i "$2" "$1"
    ! cmp -s "$1" "$1.orig" || {
        echo "emulator.sh: nothing found to mend in ${1#"$root/"}:" \
            "is it mended in this version?" >&2
        exit 1
    }
}

sed 's/^deb /deb-src /' "$root"/etc/apt/sources.list.d/*.list \
    >"$root/etc/apt/sources.list.d/source.list"
chroot "$root" sh -euc '
apt-get -qq update
apt-get -qq -y install --no-install-recommends bzip2 device-tree-compiler dpkg-dev gcc libc6-dev \
    libfdt-dev libglib2.0-dev libpixman-1-dev libslirp-dev meson ninja-build pkgconf \
    python3-pycotap python3-venv zlib1g-dev
cd /usr/src
apt-get -qq -o APT::Sandbox::User=root source qemu
mv qemu-*/ qemu
'
# A processor that restores its floating-point state writes back the flags of the first processor as
# it had read them.  These include the flags of nested paging and of interrupts, which the first
# processor may be changing.
mend "$root/$target/fpu_helper.c" '/^void cpu_clear_ignne/,/^}/{
    s/^ *env->hflags2 &=/    if (env->hflags2 \& HF2_IGNNE_MASK)\n    &/
}'
# A guest gets the same interrupt again if its processor has to stop before it has left the guest.
mend "$root/$target/svm_helper.c" '/case SVM_EVTINJ_TYPE_INTR:/,/break;/{
    s/^ *do_interrupt_x86_hardirq(.*/&\n            cs->exception_index = -1;/
}'
# Others set such a request at the same time.
mend "$root/$target/svm_helper.c" \
    's/^ *cs->interrupt_request |= .*/        bql_lock();\n&\n        bql_unlock();/'
mend "$root/$target/svm_helper.c" 's/^#include "cpu.h"/&\n#include "qemu\/main-loop.h"/'
# Firmware of other processors is not in the distribution's source.
mend "$root/usr/src/qemu/meson.build" \
    's/^ *unpack_edk2_blobs = bzip2.found()/    unpack_edk2_blobs = false/'

chroot "$root" sh -euc '
mkdir /usr/src/qemu/build && cd /usr/src/qemu/build
{
    ../configure --prefix=/usr \
        --firmwarepath=/usr/share/qemu:/usr/share/seabios:/usr/lib/ipxe/qemu \
        --target-list=x86_64-softmmu --without-default-features --enable-system --enable-tcg \
        --enable-slirp --enable-pixman --disable-docs --disable-install-blobs --disable-werror
    ninja qemu-system-x86_64
} >/tmp/build.log 2>&1 || { tail -n 40 /tmp/build.log >&2; exit 1; }
strip -o /usr/bin/qemu-system-x86_64 qemu-system-x86_64
rm -r /usr/src/qemu* /tmp/build.log
apt-get -qq clean
'
