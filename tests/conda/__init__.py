"""A file channel of stub packages, and a `conda` that solves and installs from it: what tests of environments need."""
