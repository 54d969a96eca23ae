"""Layers: what a command runs in.  An environment is a stack of them on the host.

Each file of this folder is a layer, found by its name, with one class, ``Layer``.  What they share
is in ``common/``.
"""
