"""What layers share: the two interfaces, the base of containers by an engine, and the options of containers."""
