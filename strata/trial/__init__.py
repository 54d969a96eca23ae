"""``strata try``: measure one command in several environments, as an experiment of its own."""
