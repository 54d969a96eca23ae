"""The published raw results of the original paper, read again: its logs and workbooks become one table (``tidy``)."""
