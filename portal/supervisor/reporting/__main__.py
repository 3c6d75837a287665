"""`python -m portal.supervisor.reporting RUN ATTEMPT`: make the report of a run that was claimed."""

from __future__ import annotations

import logging
import sys

import django


def main() -> int:
    """Make the report. Returns the exit code: 0 when the result is stored in the run, 2 for an invalid command line."""
    if len(sys.argv) != 3 or not all(text.isascii() and text.isdigit() for text in sys.argv[1:]):
        sys.stderr.write("Usage: python -m portal.supervisor.reporting RUN ATTEMPT\n")
        return 2
    django.setup()
    from portal.supervisor.reporting.runner import ReportRunner  # models: after Django is set up

    run, attempt = map(int, sys.argv[1:])
    logging.getLogger(__name__).info("run %d, attempt %d", run, attempt)
    ReportRunner(run, attempt).make()
    return 0


if __name__ == "__main__":
    sys.exit(main())
