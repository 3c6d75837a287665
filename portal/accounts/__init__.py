"""Users of the console and their roles, one-time login links, throttled logins, sessions.

There are no default passwords. The first start makes the administrator `admin` without a usable password and prints a
link; `manage.py login_link` makes another at any time. Others are invited by a link of their own; no password travels.
"""
