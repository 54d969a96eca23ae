"""What workloads share on the host's side."""
