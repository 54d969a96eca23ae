"""What was measured: whether a record is good (``judge``), all values in tables (``tidy``), and what is due.

``forecast`` says what a run would do.
"""
