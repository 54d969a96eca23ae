"""Read the published raw results of the original paper: its logs and workbooks become one table.

The command is that of :mod:`tidy`; source finds the files, and logs, mysql and workbooks read them.
"""
