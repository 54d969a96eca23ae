"""The system under test: brought up, one at a time, and taken down."""
