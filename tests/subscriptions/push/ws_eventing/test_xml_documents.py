"""XML of strangers costs little, declares no entity, and reaches no file and no network."""

from __future__ import annotations

import pytest

from eventing.subscriptions.push.ws_eventing.xml_documents import (
    BYTES_MAX,
    DEPTH_MAX,
    ELEMENTS_MAX,
    MalformedXml,
    name_of,
    parse_xml,
)
from tests.cpu_time import cpu_time

BOMB = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    b'<!ENTITY %c "%b">' % (98 + n, (b"&%c;" % (97 + n)) * 10) for n in range(9)
)
EXTERNAL = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'


@pytest.mark.parametrize(
    "body",
    [
        BOMB + b"]><a>&j;</a>",
        BOMB + b']><a b="&j;"/>',
        EXTERNAL,
        b'<?xml version="1.0"?>\n' + EXTERNAL,
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>',
        b'<!doctype a [<!entity x "y">]><a>&x;</a>',
        EXTERNAL.decode().encode("utf-16"),
        b'<?xml version="1.0" encoding="utf-16"?><a/>',
        b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE a+AD4-<a/>',
        b'\xef\xbb\xbf<?xml version="1.0" encoding="ebcdic-cp-us"?><a/>',
        b"<a>\xff</a>",
        b"",
        b"<a>",
        b"<a/><b/>",
        b"<a>&nbsp;</a>",
        b"<a>\x00</a>",
        b"<a" + b" b='1'" * 2 + b"/>",
        b"<a>" * (DEPTH_MAX + 1) + b"</a>" * (DEPTH_MAX + 1),
        b"<a>" * 9000 + b"</a>" * 7000,
        b"<a>" + b"<b/>" * ELEMENTS_MAX + b"</a>",
        b"<a>" + b"x" * BYTES_MAX + b"</a>",
    ],
)
def test_what_is_not_plain_xml_within_bounds_is_refused_at_once(body: bytes) -> None:
    with cpu_time() as took, pytest.raises(MalformedXml) as found:
        parse_xml(body)
    assert took.seconds < 1
    assert "root:" not in str(found.value)


def test_the_bounds_themselves_are_allowed_and_comments_and_instructions_are_left_out() -> None:
    assert name_of(parse_xml(b"<a>" * DEPTH_MAX + b"</a>" * DEPTH_MAX)) == ("", "a")
    assert len(parse_xml(b"<a>" + b"<b/>" * (ELEMENTS_MAX - 1) + b"</a>")) == ELEMENTS_MAX - 1
    root = parse_xml(
        b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?><?p i?><a xmlns='urn:n'><!-- c --><b/>&amp;</a>"
    )
    assert (name_of(root), len(root)) == (("urn:n", "a"), 1)
