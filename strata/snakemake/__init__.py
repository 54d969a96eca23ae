"""What the rules of the workflow ask."""
