"""Systems under test: brought up, taken down, and the journal for cleaning up after them."""
