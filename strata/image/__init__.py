"""The image: one recipe, a container image and a disk of a machine, kept in a cache."""
