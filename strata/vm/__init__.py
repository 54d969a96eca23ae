"""Virtual machines: their accelerator, Vagrant box, settings, and life cycle in libvirt."""
