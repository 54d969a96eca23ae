"""Systems under test: brought up, taken down, and the journal by which they are cleaned up."""
