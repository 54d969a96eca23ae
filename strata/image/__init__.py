"""The image: one recipe, a container image and a machine's disk made of it, kept in a cache."""
