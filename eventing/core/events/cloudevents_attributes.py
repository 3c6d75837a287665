"""Context attributes of a CloudEvent: names, value types, and the rule for each attribute.

Pure predicates and one checker with a sentence per rule, shared by the structured form (cloudevents.py) and the HTTP
binding (cloudevents_http.py). Source of every rule: CloudEvents 1.0.2, sections "Naming Conventions", "Type System" and
"Context Attributes", and the RFCs cited there. All patterns are linear in the length of the text (possessive
quantifiers).
"""

from __future__ import annotations

import ipaddress
import re
from calendar import isleap
from collections.abc import Callable, Iterable, Mapping

from eventing.core.errors import InvalidEvent

SPECVERSION = "1.0"
REQUIRED = ("specversion", "id", "source", "type")
OPTIONAL = ("datacontenttype", "dataschema", "subject", "time")
# The specification recommends 20; longer names of other systems are accepted.
NAME_CHARS_MAX = 64  # bound: characters of an attribute's name; the event is refused: `invalid-event`
INTEGER_MAX = 2**31 - 1
INTEGER_MIN = -(2**31)
SHOWN_CHARS_MAX = 80  # characters of a stranger's text that an error repeats

_NAME = re.compile(rf"[a-z0-9]{{1,{NAME_CHARS_MAX}}}")
_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_NONCHARACTERS}]")

# RFC 3986, appendix A.
_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+,;="
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*+:"


def _run(chars: str) -> str:
    return rf"(?:[{chars}]++|%[0-9A-Fa-f]{{2}})*+"


_AUTHORITY = (
    rf"(?:{_run(_UNRESERVED + _SUB_DELIMS + ':')}@)?"
    rf"(?:\[(?:(?P<ipv6>[0-9A-Fa-f:.]++)|[vV][0-9A-Fa-f]++\.[{_UNRESERVED}{_SUB_DELIMS}:]++)\]"
    rf"|{_run(_UNRESERVED + _SUB_DELIMS)})"
    r"(?::[0-9]*+)?"
)
_PATH = _run(_UNRESERVED + _SUB_DELIMS + ":@/")
_QUERY = _run(_UNRESERVED + _SUB_DELIMS + ":@/?")
_PATH_ALONE = rf"(?!//){_PATH}"
_ABSOLUTE_URI = re.compile(rf"{_SCHEME}(?://{_AUTHORITY}(?:/{_PATH})?|{_PATH_ALONE})(?:\?{_QUERY})?")
_URI_REFERENCE = re.compile(
    rf"(?:{_SCHEME}|(?![^/?#]*:))(?://{_AUTHORITY}(?:/{_PATH})?|{_PATH_ALONE})(?:\?{_QUERY})?(?:#{_QUERY})?"
)

# RFC 3339, section 5.6, with the days that each month has (section 5.7).
_TIMESTAMP = re.compile(
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d))"
    r"[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d++)?(?:[Zz]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)

# RFC 2045, section 5.1.
_RFC2045_NAME = r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]++"
_PARAMETER = rf" *+; *+({_RFC2045_NAME})=({_RFC2045_NAME}|\"(?:[ !#-\[\]-~]|\\[ -~])*+\")"
_MEDIA_TYPE = re.compile(
    rf"({_RFC2045_NAME}/{_RFC2045_NAME})((?>(?:{_PARAMETER})*))"  # Python 3.11.2 mistakes `*+` after a group that captures
)
_PARAMETERS = re.compile(_PARAMETER)


def is_name(text: str) -> bool:
    """Return True if `text` may name an attribute: 1 to 64 of a-z and 0-9, and not the reserved `data`."""
    return _NAME.fullmatch(text) is not None and text != "data"


def is_string(text: str) -> bool:
    """Return True if `text` has only characters of the type String: no controls, noncharacters or surrogates."""
    return (text.isascii() and text.isprintable()) or _FORBIDDEN.search(text) is None


def is_uri_reference(text: str) -> bool:
    """Return True if `text` is a non-empty URI-reference (RFC 3986, section 4.1)."""
    return text != "" and _is_uri(_URI_REFERENCE, text)


def is_absolute_uri(text: str) -> bool:
    """Return True if `text` is an absolute URI: with a scheme, without a fragment (RFC 3986, section 4.3)."""
    return _is_uri(_ABSOLUTE_URI, text)


def _is_uri(pattern: re.Pattern[str], text: str) -> bool:
    match = pattern.fullmatch(text)
    if match is None:
        return False
    if (address := match["ipv6"]) is not None:
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            return False
    return True


def is_timestamp(text: str) -> bool:
    """Return True if `text` is an RFC 3339 date-time of a day that exists.

    A leap second (:60) is accepted where one is possible: at 23:59 UTC. The date is not compared with a table of leap
    seconds.
    """
    if _TIMESTAMP.fullmatch(text) is None:
        return False
    if text.startswith("02-29", 5) and not isleap(int(text[:4])):
        return False
    return text[17] != "6" or _is_last_minute_utc(text)


def _is_last_minute_utc(text: str) -> bool:
    minutes = int(text[11:13]) * 60 + int(text[14:16])
    if text[-1] not in "Zz":
        offset = int(text[-5:-3]) * 60 + int(text[-2:])
        minutes += offset if text[-6] == "-" else -offset
    return minutes % 1440 == 1439


def is_media_type(text: str) -> bool:
    """Return True if `text` is a media type with its parameters (RFC 2045, section 5.1)."""
    return text == "application/json" or _MEDIA_TYPE.fullmatch(text) is not None


def split_media_type(text: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Split a media type into the lower-case `type/subtype` and (lower-case name, unquoted value) pairs; None if it is none."""
    match = _MEDIA_TYPE.fullmatch(text)
    if match is None:
        return None
    pairs = _PARAMETERS.findall(match[2])
    return match[1].lower(), [(name.lower(), unquote(value) if value[0] == '"' else value) for name, value in pairs]


def unquote(text: str) -> str:
    """Return the content of a well-formed quoted string, without quotation marks and escapes (RFC 7230, section 3.2.6)."""
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def show(text: str) -> str:
    """Quote a stranger's text for an error message: one line, printable, at most 80 characters, in quotation marks."""
    shown = "".join(char if char.isprintable() else "\ufffd" for char in text[:SHOWN_CHARS_MAX])
    return f'"{shown}{"…" if len(text) > SHOWN_CHARS_MAX else ""}"'


_RULES: dict[str, tuple[Callable[[str], bool], str]] = {
    "specversion": (SPECVERSION.__eq__, f'must be "{SPECVERSION}"'),
    "id": (bool, "must be a non-empty string"),
    "source": (is_uri_reference, "must be a non-empty URI-reference (RFC 3986)"),
    "type": (bool, "must be a non-empty string"),
    "datacontenttype": (is_media_type, "must be a media type such as application/json (RFC 2045)"),
    "dataschema": (is_absolute_uri, "must be an absolute URI without fragment (RFC 3986)"),
    "subject": (bool, "must be a non-empty string, or be left out"),
    "time": (is_timestamp, "must be a date and time such as 2026-01-31T12:00:00Z (RFC 3339)"),
}


def check_names(names: Iterable[str]) -> None:
    """Refuse names that no attribute may have. Raises InvalidEvent naming the first."""
    for name in names:
        if name in _RULES or is_name(name):
            continue
        if name == "data":
            raise InvalidEvent("data is a reserved name; no attribute may have it.")
        raise InvalidEvent(f"{show(name)} cannot name an attribute: use 1 to {NAME_CHARS_MAX} of a-z and 0-9.")


def check_attributes(attributes: Mapping[str, str | int | bool]) -> None:
    """Check the values of all attributes that are set; their names are already checked.

    Raises InvalidEvent naming the attribute and the rule that it breaks.
    """
    for name in REQUIRED:
        if name not in attributes:
            raise InvalidEvent(f"{name} is missing; every event has {', '.join(REQUIRED)}.")
    for name, value in attributes.items():
        rule = _RULES.get(name)
        if isinstance(value, str):
            if not is_string(value):
                raise InvalidEvent(f"{name} has a character that no attribute may have; it is {show(value)}.")
            if rule is not None and not rule[0](value):
                raise InvalidEvent(f"{name} {rule[1]}; it is {show(value)}.")
        elif rule is not None:
            raise InvalidEvent(f"{name} {rule[1]}; it is not a string.")
