"""The rig: an emulated host that runs KVM for real, as machines have it that the developers' are not.

``root`` makes its disks, ``hardware`` says what it is made of, ``host`` boots it and runs commands in it, and
``python -m rig`` (`make rig`) is the command.  docs/testing.md tells how to use it; its numbers are never results.
"""
