"""Checks of `manage.py doctor`: the health of an installation, and remedies.

Each check looks at one thing and gives findings (findings.Finding); none changes anything. The checks work on a domain
that runs and on one that does not.
"""
