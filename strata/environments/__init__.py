"""Layers: what wraps a command.  An environment is a stack of them on the host.

Each file of this folder is a layer, found by its name, with two classes: ``Kind``, which the planner asks, and
``Layer``, which a cell brings up.  What they share is in ``common/``.
"""
