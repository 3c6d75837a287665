"""Names: one full form for each, with the authority first and a slash at both ends; ids are never mistaken for names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidRequest
from eventing.core.names import NAME_CHARS_MAX, SEGMENTS_MAX, is_id, normalise

ID = "a2" * 13
segments = st.from_regex(r"[A-Za-z0-9._~-]{1,12}", fullmatch=True).filter(lambda segment: segment not in (".", ".."))
paths = st.lists(segments, min_size=1, max_size=SEGMENTS_MAX - 1).map("/".join)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/localhost/a/b/", "/localhost/a/b/"),
        ("/localhost/a/b", "/localhost/a/b/"),
        ("a", "/localhost/a/"),
        ("a/b/", "/localhost/a/b/"),
        ("/example.org/A.b_c~d-1/", "/example.org/A.b_c~d-1/"),
        ("...", "/localhost/.../"),
    ],
)
def test_name_gets_its_full_form(text: str, name: str) -> None:
    assert normalise(text, "localhost") == name


@given(paths)
def test_full_form_is_stable_and_the_same_for_every_way_to_write_it(path: str) -> None:
    name = normalise(path, "localhost")
    assert name == f"/localhost/{path}/"
    assert {normalise(text, "other") for text in (name, name[:-1])} == {name}


@given(st.text(max_size=300) | st.text("/.a%", max_size=300))
def test_text_is_refused_or_becomes_a_full_name(text: str) -> None:
    try:
        name = normalise(text, "localhost")
    except InvalidRequest:
        return
    assert name.startswith("/")
    assert name.endswith("/")
    assert len(name) <= NAME_CHARS_MAX
    assert "//" not in name
    assert not {".", ".."} & set(name.split("/"))
    assert normalise(name, "other") == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "//",
        "/localhost",
        "/localhost/",
        "a//b",
        "/localhost//a/",
        "a b",
        "a%20b",
        "ä",
        "a\n",
        "a?b",
        "..",
        "a/../b",
        ".",
        "x" * 65,
        "/".join(["a"] * SEGMENTS_MAX),
        "/".join(["x" * 60] * 5),
    ],
)
def test_what_is_no_name_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        normalise(text, "localhost")


@pytest.mark.parametrize("reference", [ID, f"{ID}.admin", "domain.admin"])
def test_ids_are_known_by_their_form(reference: str) -> None:
    assert is_id(reference)


@pytest.mark.parametrize(
    "reference",
    ["", ID[:-1], ID + "a", ID.upper(), ID[:-1] + "1", f"{ID}.admin.admin", f"/{ID}", "domain", ".admin", ID + "\n"],
)
def test_other_references_are_names(reference: str) -> None:
    assert not is_id(reference)


@given(paths)
def test_no_full_name_has_the_form_of_an_id(path: str) -> None:
    assert not is_id(normalise(path, "localhost"))
