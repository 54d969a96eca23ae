"""Layers, in which commands run; an environment is a stack of layers on the host.

Each file of this folder is a layer: the file's name is the layer's name, and the file has one
class, ``Layer``.  What the layers share is in ``common/``.
"""
