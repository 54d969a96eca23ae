"""Virtual machines: what accelerates them, their disk and box, their settings, and what libvirt holds of ours."""
