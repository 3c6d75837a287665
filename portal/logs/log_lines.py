"""Format of log lines: text or one JSON object each (HERALD_LOG_FORMAT), without credentials.

No code of ours logs a credential or an event's data. Libraries quote addresses and headers in their errors, though: what
looks like a credential is taken out of every line as the last step. They quote strangers, too: a message is one line of
bounded length whatever is in it, and nothing in it moves a terminal's cursor.
"""

from __future__ import annotations

import logging
import re
import sys
import textwrap
from types import TracebackType
from typing import Any

HIDDEN = "[hidden]"
# bound: characters of a log message, and of a traceback; the text is cut, with the number of missing characters
TEXT_CHARS_MAX = 16_000
"""Of a message, and of a traceback. A stranger's header may be quoted in one; the supervisor cuts lines at 16 KiB as well."""

# Whoever is quoted must not be able to make this slow: a run of characters is looked through from one place only, or for a
# bounded length (measured: 16,000 characters made for it take 15 ms).
_CREDENTIAL = re.compile(
    r"""(?P<name>access_token=|\b(?:Bearer|Basic)\s+|\b(?:set-)?cookie:\s*)[^\s&"'`,]+"""  # in queries and headers
    r"|\beyJ[\w-]{5,512}+\.[\w-]++\.[\w-]*+"  # a JWT, wherever it stands; its header is some 100 characters
    r"|(?P<place>(?<![a-z0-9+.-])[a-z0-9+.-]++://[^\s:/@]*+:)[^\s/@]++(?=@)",  # a password in an address
    re.IGNORECASE,
)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")  # tabs and ends of lines stay


def without_credentials(text: str) -> str:
    """Return `text` with everything that resembles a credential replaced by HIDDEN."""
    return _CREDENTIAL.sub(lambda found: (found["name"] or found["place"] or "") + HIDDEN, text)


def bounded(text: str) -> str:
    """At most TEXT_CHARS_MAX of `text`, without credentials, and how much more there was."""
    more = len(text) - TEXT_CHARS_MAX
    shown = without_credentials(text[:TEXT_CHARS_MAX])
    return f"{shown} [and {more} characters more]" if more > 0 else shown


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


class TextLines(logging.Formatter):
    """Time, level, process, logger, request and trace if any, message: one line. A traceback's lines follow, indented."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(of)s %(name)s%(request)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line."""
        record.message = _CONTROL.sub(_escaped, bounded(record.message))
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """Format the continuation lines so that none can be taken for another message."""
        return textwrap.indent(_CONTROL_IN_LINES.sub(_escaped, bounded(super().formatException(ei))), "  ")


def formatter(log_format: str) -> str:
    """The formatter's place, for Django's settings; `log_format` as HERALD_LOG_FORMAT."""
    return "portal.logs.json_lines.JsonLines" if log_format == "json" else "portal.logs.log_lines.TextLines"


def catch_the_rest(log_format: str) -> None:
    """Log Python warnings and fatal errors as lines, too, where lines are JSON."""
    if log_format != "json":
        return
    logging.captureWarnings(True)
    sys.excepthook = _fallen_over


def _fallen_over(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        logging.getLogger("herald").critical("The process has fallen over: %s", error, exc_info=(kind, error, trace))
