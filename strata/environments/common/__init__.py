"""What layers share: their base class, that of engines' containers, and the registry."""
