"""Test one claim in its own experiment, and forecast what would decide ratios and claims."""
