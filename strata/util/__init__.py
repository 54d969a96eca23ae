"""What all other packages build on: errors, files, processes, paths, and messages."""
