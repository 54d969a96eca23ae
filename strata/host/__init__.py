"""The host: its facts, control groups, addresses, distribution and firewall, and daemons on it."""
