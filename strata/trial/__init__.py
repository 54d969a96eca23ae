"""``strata try``: measure one command in several environments, as its own experiment."""
