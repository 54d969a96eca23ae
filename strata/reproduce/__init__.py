"""Reproduce: measure the experiment of an archive here, and say what agrees."""
