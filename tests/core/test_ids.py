"""Ids: an RP's id is the hash of its genesis descriptor, whatever the order in which that was written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.ids import (
    DOMAIN_ADMIN,
    RP_ID_PATTERN,
    admin_id,
    canonical_json,
    is_admin,
    members_changed,
    rp_id,
    same_json,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=6,
)
descriptors = st.dictionaries(st.text(), values, min_size=1, max_size=5)


def test_id_of_a_known_descriptor_never_changes() -> None:
    genesis = {"domain": "localhost", "creator": "ann", "nonce": "0", "title": "Ü"}
    assert canonical_json(genesis) == '{"creator":"ann","domain":"localhost","nonce":"0","title":"Ü"}'.encode()
    assert rp_id(genesis) == "citoa6lkyoiltvpanwqf6jn67j"


EQUAL_IN_PYTHON: list[tuple[Any, Any]] = [
    (1, True),
    (1.0, True),
    (1, 1.0),
    (0, False),
    (0.0, False),
    (0, 0.0),
    (0, -0.0),
]


@pytest.mark.parametrize(("one", "other"), EQUAL_IN_PYTHON)
def test_what_is_equal_in_python_only_is_not_the_same_json(one: Any, other: Any) -> None:
    assert one == other
    for wrap in (lambda value: value, lambda value: [value], lambda value: {"a": [{"b": value}]}):
        assert not same_json(wrap(one), wrap(other))
        assert same_json(wrap(one), wrap(one))
    assert members_changed({"a": [one], "b": one}, {"a": [other], "b": one}) == ["a"]


@given(values)
def test_json_that_was_stored_and_read_again_is_the_same(value: Any) -> None:
    assert same_json(value, json.loads(json.dumps(value)))


@given(descriptors, st.randoms())
def test_order_of_writing_does_not_matter(genesis: dict[str, Any], random: Any) -> None:
    shuffled = list(genesis.items())
    random.shuffle(shuffled)
    assert rp_id(dict(shuffled)) == rp_id(genesis)
    assert RP_ID_PATTERN.fullmatch(rp_id(genesis))


@given(descriptors, st.text())
def test_any_change_gives_another_id(genesis: dict[str, Any], value: str) -> None:
    name = next(iter(genesis))
    changed = {**genesis, name: [genesis[name], value]}
    assert rp_id(changed) != rp_id(genesis)


def test_administrative_ids_are_told_apart_and_end_there() -> None:
    rp = rp_id({"a": 1})
    assert admin_id(rp) == f"{rp}.admin"
    assert is_admin(admin_id(rp))
    assert is_admin(DOMAIN_ADMIN)
    assert not is_admin(rp)
    for admin in (admin_id(rp), DOMAIN_ADMIN):
        with pytest.raises(ValueError, match="have no administrative RP"):
            admin_id(admin)
