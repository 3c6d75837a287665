#!/usr/bin/env python
"""The server's command line in a source tree: migrate, runserver (daphne), and Herald's own commands (run, doctor, ...)."""

from portal.command_line import main

if __name__ == "__main__":
    main()
