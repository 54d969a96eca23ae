#!/bin/sh
# Makes a host of a bootstrapped root filesystem, with everything that the project's own setup
# installs, a network, and ssh.
# Called by mmdebstrap, on the machine that builds.  Usage: inside.sh ROOT CHECKOUT PUBLIC-KEY
set -eu
root=$1 checkout=$2 key=$3
home=/root
project=$root$home/strata

mkdir -p "$project" "$root$home/.ssh"
chmod 0700 "$root$home" "$root$home/.ssh"
cp "$key" "$root$home/.ssh/authorized_keys"
# How this machine reaches mirrors and package indexes, the rig does too.
for path in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /etc/resolv.conf; do
    [ ! -e "$path" ] || cp -L --remove-destination "$path" "$root$path"
done

# mmdebstrap lets no package start its daemon; neither does the setup.
tar -C "$checkout" --exclude=__pycache__ -cf - \
    pyproject.toml scripts strata requirements.txt requirements-test.txt |
    tar -C "$project" -xf -
printf '#!/bin/sh\n' >"$project/scripts/dockerd.sh"
chroot "$root" env HOME="$home" sh -c 'cd ~/strata && scripts/setup.sh test'
find "$project" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -r {} +

echo rig >"$root/etc/hostname"
echo "127.0.0.1 localhost rig" >"$root/etc/hosts"
echo "/dev/vda / ext4 rw 0 1
LABEL=strata-images /var/cache/strata ext4 nofail 0 2" >"$root/etc/fstab"
mkdir -p "$root/var/cache/strata"
printf '[Match]\nDriver=virtio_net\n[Network]\nDHCP=ipv4\n[DHCPv4]\nUseDNS=no\n' \
    >"$root/etc/systemd/network/10-virtio.network"
chroot "$root" systemctl --quiet enable systemd-networkd ssh
chroot "$root" systemctl --quiet mask systemd-networkd-wait-online apt-daily.timer \
    apt-daily-upgrade.timer man-db.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
