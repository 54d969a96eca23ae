"""The image: built by one recipe as container image and as machines' disk, and cached."""
