"""Read the published raw results of the original paper: its logs and workbooks become one table.

tidy is the command; source finds the files, and logs, mysql and workbooks read them.
"""
