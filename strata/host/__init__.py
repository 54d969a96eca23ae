"""The host: its facts, control groups, addresses and distribution, and what is observed on it."""
