"""Test one claim in an experiment of its own, and forecast what would decide ratios and claims."""
