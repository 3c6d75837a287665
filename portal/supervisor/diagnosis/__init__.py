"""`manage.py doctor`: is this installation healthy, and if not, what is to be done?

Each check looks at one thing and gives findings (findings.Finding); none changes anything. The checks work on a domain
that runs and on one that does not.
"""
