"""A cell: what is run in a system, what is observed meanwhile, its log and its record."""
