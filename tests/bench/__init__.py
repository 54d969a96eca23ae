"""What the machinery costs, measured in one run: `make bench` (docs/architecture.md)."""
