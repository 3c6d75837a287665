"""`python -m portal.reporting RUN ATTEMPT`: make the report of a run that was claimed."""

from __future__ import annotations

import logging
import sys

import django


def main() -> int:
    """Make it. Returns the exit code: 0 when the run was told how it ended, 2 for a wrong command line."""
    if len(sys.argv) != 3 or not all(text.isascii() and text.isdigit() for text in sys.argv[1:]):
        sys.stderr.write("Usage: python -m portal.reporting RUN ATTEMPT\n")
        return 2
    django.setup()
    from portal.reporting.runner import Runner  # models: after Django is set up

    run, attempt = map(int, sys.argv[1:])
    logging.getLogger(__name__).info("run %d, attempt %d", run, attempt)
    Runner(run, attempt).make()
    return 0


if __name__ == "__main__":
    sys.exit(main())
