"""Code that the parsers of workloads share, which run on the host, outside the image."""
