"""What every room stands on: errors, files, processes, places, and how mistakes are told."""
