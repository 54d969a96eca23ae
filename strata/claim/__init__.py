"""Test one published claim in its own experiment, and forecast what decides ratios and claims."""
