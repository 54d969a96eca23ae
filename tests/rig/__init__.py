"""The rig: an emulated host with real KVM, which the developers' machines do not have.

``root`` makes its disks, ``hardware`` defines its hardware, ``host`` boots it and runs commands in
it.  The command is ``python -m rig`` (`make rig`).  docs/testing.md describes its use.  Its numbers
are never results.
"""
