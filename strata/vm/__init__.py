"""Virtual machines: their accelerator, box and settings, and their life in libvirt."""
