"""Somebody without root on an emulated host, who may do more or less."""

from rig import host

NAME = "someone"
PROJECT = f"/home/{NAME}/strata"
# What is done by root so that somebody may.
MAY = {
    "nobody": "true",
    "groups": f"usermod -aG docker,libvirt,kvm {NAME}",
    "sudo": (
        f"usermod -aG docker,libvirt,kvm {NAME}; "
        f"echo '{NAME} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{NAME}"
    ),
}
_ADD = f"""
id {NAME} >/dev/null 2>&1 || useradd --create-home --shell /bin/bash {NAME}
rm -rf {PROJECT} && cp -r /root/.ssh /home/{NAME}/ && cp -a {host.PROJECT} {PROJECT}
find {PROJECT}/.venv/bin -type f -exec sed -i '1s|{host.PROJECT}/|{PROJECT}/|' {{}} +
chown -R {NAME}: /home/{NAME}
"""


def add(rig: host.Rig, may: str) -> tuple[str, str]:
    """Make sure that there is a user with the rights of a key of :data:`MAY`.

    The user has a copy of root's checkout.  Returns the user's name and the checkout's place.
    """
    rig.good(f"{_ADD}{MAY[may]}")
    return NAME, PROJECT
