"""The command ``gate``, for CI: it measures budgets of cost until each is decided.

budgets: reads the file of budgets that a person writes.
measure: measures one session, in a folder of its own.
command: the interim analyses and the exit status.
reports: JUnit XML, Markdown and history.
"""
