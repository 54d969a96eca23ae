"""Modules on which all other packages build: errors, files, processes, paths, and messages."""
