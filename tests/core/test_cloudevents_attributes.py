"""The rules of single attributes: URIs, times, media types, strings and names, each against the text of its standard."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.events.cloudevents_attributes import (
    is_absolute_uri,
    is_media_type,
    is_name,
    is_string,
    is_timestamp,
    is_uri_reference,
    show,
    split_media_type,
)

URIS = [  # RFC 3986, section 1.1.2, and corners of its grammar
    "ftp://ftp.is.co.za/rfc/rfc1808.txt",
    "http://www.ietf.org/rfc/rfc2396.txt",
    "ldap://[2001:db8::7]/c=GB?objectClass?one",
    "mailto:John.Doe@example.com",
    "news:comp.infosystems.www.servers.unix",
    "tel:+1-816-555-1212",
    "telnet://192.0.2.16:80/",
    "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
    "http://user:pass@host:8080/a/b;c=1,2?x=/?:@",
    "http://[v1.fe80::a+en1]/",
    "http://host:/",
    "file:///etc/hosts",
    "a:",
    "a+b-c.1:/p",
    "http://%E4/%20",
    "x:a//b",
]
REFERENCES = [
    "/",
    "/a/b",
    "a",
    "./a:b",
    "../a",
    "?q",
    "#f",
    "/a#f/?",
    "//host",
    "//host/a//b",
    "//host:80?x",
    "a//b",
    "1-555-123-4567",
    "/sensors/tn-1234567/alerts",
    "a%20b",
    "*",
    "(x)",
]
NO_REFERENCES = [
    "/a b",
    " /a",
    "/a\n",
    "/ä",
    "/%",
    "/%2",
    "/%zz",
    "1a:b",
    ":a",
    "a b:c",
    "http://[::1",
    "http://[::g]/",
    "http://[1:2:3]/",
    "http://[]/",
    "http://host:8a/",
    "http://a@b@c/",
    "/a#b#c",
    '/"a"',
    "/<a>",
    "/a|b",
    "/a\\b",
    "/a^b",
    "/{a}",
    "/`a`",
    "http://[fe80::1%25eth0]/",
    "\x00",
]


@pytest.mark.parametrize("text", URIS)
def test_absolute_uris_are_taken_as_both(text: str) -> None:
    assert is_absolute_uri(text)
    assert is_uri_reference(text)


@pytest.mark.parametrize("text", REFERENCES)
def test_relative_references_are_references_only(text: str) -> None:
    assert is_uri_reference(text)
    assert not is_absolute_uri(text)


@pytest.mark.parametrize("text", ["", *NO_REFERENCES])
def test_what_rfc_3986_does_not_allow_is_neither(text: str) -> None:
    assert not is_uri_reference(text)
    assert not is_absolute_uri(text)


def test_a_uri_with_fragment_is_no_absolute_uri() -> None:
    assert is_uri_reference("https://example.com/a#b")
    assert not is_absolute_uri("https://example.com/a#b")


@given(st.text())
def test_any_text_is_a_path_once_percent_encoded(text: str) -> None:
    assert is_uri_reference("/" + quote(text, errors="surrogatepass"))


def test_long_hostile_text_is_decided_in_linear_time() -> None:
    for text in (
        "a" * 200_000 + " ",
        "/%20" * 50_000 + " ",
        "//" + "a:" * 100_000 + "@@",
        "a" * 200_000 + ":" * 3 + " ",
    ):
        assert not is_uri_reference(text)
    assert not is_media_type("a/b" + ";c=d" * 50_000 + ";")
    assert not is_media_type('a/b;c="' + "\\" * 100_001 + '"\n')
    assert not is_timestamp("2018-04-05T17:31:00." + "0" * 200_000)


TIMES = [  # RFC 3339, section 5.8, and corners
    "1985-04-12T23:20:50.52Z",
    "1996-12-19T16:39:57-08:00",
    "1990-12-31T23:59:60Z",
    "1990-12-31T15:59:60-08:00",
    "1937-01-01T12:00:27.87+00:20",
    "2016-12-31T23:59:60.5Z",
    "2017-01-01T05:29:60+05:30",
    "2018-04-05t17:31:00z",
    "2018-04-05T17:31:00-00:00",
    "2018-04-05T17:31:00.123456789123456789Z",
    "2024-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "0000-02-29T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59+23:59",
]
NO_TIMES = [
    "",
    "2018-04-05",
    "2018-04-05T17:31Z",
    "2018-04-05T17:31:00",
    "2018-04-05 17:31:00Z",
    "2018-04-05T17:31:00.Z",
    "2018-04-05T17:31:00,5Z",
    "2018-04-05T17:31:00+0100",
    "2018-04-05T17:31:00+01",
    "2018-04-05T17:31:00+24:00",
    "2018-04-05T17:31:00+01:60",
    "2018-04-05T24:00:00Z",
    "2018-04-05T17:60:00Z",
    "2018-04-05T17:31:61Z",
    "2018-04-05T17:31:60Z",
    "2018-04-05T23:59:60+01:00",
    "2018-00-05T17:31:00Z",
    "2018-13-05T17:31:00Z",
    "2018-04-00T17:31:00Z",
    "2018-04-31T17:31:00Z",
    "2018-02-30T17:31:00Z",
    "2023-02-29T17:31:00Z",
    "1900-02-29T17:31:00Z",
    "18-04-05T17:31:00Z",
    "12018-04-05T17:31:00Z",
    "+2018-04-05T17:31:00Z",
    "2018-4-5T17:31:00Z",
    "2018-095T17:31:00Z",
    "20180405T173100Z",
    "2018-W14-4T17:31:00Z",
    "2018-04-05T17:31:00Z\n",
    " 2018-04-05T17:31:00Z",
    "२०१८-04-05T17:31:00Z",
    "now",
]


@pytest.mark.parametrize("text", TIMES)
def test_rfc_3339_times_are_taken(text: str) -> None:
    assert is_timestamp(text)


@pytest.mark.parametrize("text", NO_TIMES)
def test_other_times_are_not(text: str) -> None:
    assert not is_timestamp(text)


@given(st.datetimes(), st.integers(-1439, 1439))
def test_every_moment_of_the_calendar_is_a_time(moment: datetime, offset_minutes: int) -> None:
    zone = timezone(timedelta(minutes=offset_minutes))
    assert is_timestamp(moment.replace(tzinfo=zone).isoformat())


@given(st.integers(1, 9999), st.integers(0, 13), st.integers(0, 32))
def test_a_day_is_a_day_exactly_if_the_calendar_has_it(year: int, month: int, day: int) -> None:
    try:
        datetime(year, month, day)
        exists = True
    except ValueError:
        exists = False
    assert is_timestamp(f"{year:04}-{month:02}-{day:02}T00:00:00Z") is exists


@pytest.mark.parametrize(
    "text",
    [
        "application/json",
        "Application/JSON",
        "application/vnd.a+json",
        "text/plain;charset=utf-8",
        "text/plain; charset=utf-8",
        'text/plain ; charset="utf-8"; format=flowed',
        'a/b;c=";\\"\\\\"',
        "x-a!#$&/*",
        "*/*",
    ],
)
def test_media_types_are_taken(text: str) -> None:
    assert is_media_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "json",
        "/",
        "a/",
        "/b",
        "a/b/c",
        "a/b;",
        "a/b; c",
        "a/b;c=",
        'a/b;c="',
        "a /b",
        "a/b c",
        " a/b",
        "a/b\n",
        "ä/b",
        "a/b;c=é",
        "a/b, c/d",
    ],
)
def test_what_is_no_media_type_is_not(text: str) -> None:
    assert not is_media_type(text)
    assert split_media_type(text) is None


def test_media_type_is_split_into_lower_case_type_and_unquoted_parameters() -> None:
    assert split_media_type('Text/PLAIN; CharSet="U\\TF-8";x=Y') == ("text/plain", [("charset", "UTF-8"), ("x", "Y")])


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"])))
def test_assigned_characters_other_than_controls_make_strings(text: str) -> None:
    assert is_string(text)


@pytest.mark.parametrize(
    "code", [0, 9, 0x1F, 0x7F, 0x80, 0x9F, 0xD800, 0xDFFF, 0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF]
)
def test_controls_surrogates_and_noncharacters_make_none(code: int) -> None:
    assert not is_string("a" + chr(code) + "ä")


@pytest.mark.parametrize("code", [0x20, 0x7E, 0xA0, 0xD7FF, 0xE000, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000, 0x10FFFD])
def test_their_neighbours_do(code: int) -> None:
    assert is_string("a" + chr(code))


def test_names_are_lower_case_letters_and_digits() -> None:
    assert all(map(is_name, ["a", "0", "traceparent", "x" * 64, "data1"]))
    assert not any(map(is_name, ["", "A", "a-b", "a_b", "a.b", "ä", "a\n", "x" * 65, "data", "٣"]))


@given(st.text())
def test_shown_text_is_one_short_printable_line(text: str) -> None:
    assert show(text).isprintable()
    assert len(show(text)) <= 83
