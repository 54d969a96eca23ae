"""Code that layers share: their base class, the base class of containers, and the registry."""
