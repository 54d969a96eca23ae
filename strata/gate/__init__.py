"""The command ``gate``, for CI: budgets of cost are measured until each is decided.

budgets: the file that a person writes.  measure: the results of one session, in a folder of their
own.  command: the looks at them, and the exit status.  reports: JUnit XML, Markdown and history.
"""
