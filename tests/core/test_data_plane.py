"""Addresses of the data plane, slots, and which primary holds what."""

from __future__ import annotations

from typing import Any

import pytest

from eventing.core.brokers import broker_address
from eventing.core.config import Config
from eventing.core.data_plane import (
    SLOTS,
    ServerAddress,
    UnownedSlot,
    cluster_topology,
    data_plane_address,
    divided,
    key_of_command,
    keys_of_command,
    slot_of_key,
    slot_of_tag,
)
from eventing.core.errors import ConfigError

BROKER = {"HERALD_BROKER_URL": "redis://broker/0"}


@pytest.mark.parametrize(
    ("url", "kind", "places", "masters"),
    [
        ("", "single", (), ()),
        ("redis://h:1/2", "single", (), ()),
        ("unix:///a,b.sock", "single", (), ()),
        ("redis+cluster://h:7000,[::1]:7001,k", "cluster", (("h", 7000), ("::1", 7001), ("k", 6379)), ()),
        ("redis+sentinel://a,b:1/main", "sentinel", (("a", 26379), ("b", 1)), ("main",)),
        ("sentinel://a/one,two?db=3", "sentinel", (("a", 26379),), ("one", "two")),
        ("rediss+shards://u:p@a,b/4", "shards", (("a", 6379), ("b", 6379)), ()),
    ],
)
def test_an_address_names_its_servers(url: str, kind: str, places: Any, masters: tuple[str, ...]) -> None:
    found = data_plane_address(url)
    assert (found.kind, found.places, found.masters) == (kind, places, masters)


def test_the_url_of_a_server_has_the_credentials_and_the_database() -> None:
    shards = data_plane_address("rediss+shards://us%2Fer:p%40ss@a,b/4")
    assert shards.url_of(ServerAddress("b", 6379)) == "rediss://us%2Fer:p%40ss@b:6379/4"
    assert (
        data_plane_address("redis+cluster://:secret@h").url_of(ServerAddress("::1", 1)) == "redis://:secret@[::1]:1/0"
    )
    assert "p%40ss" not in repr(shards.places)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://:hunter2@a,b/0", "names several servers"),
        ("redis+cluster://:hunter2@", "cannot be read"),
        ("redis+cluster://:hunter2@a:x", "cannot be read"),
        ("redis+cluster://:hunter2@a:0", "cannot be read"),
        ("redis+cluster://:hunter2@a,,b", "cannot be read"),
        ("redis+cluster://:hunter2@a/1", "cannot be read"),
        ("redis+cluster://:hunter2@a?db=1", "only database 0"),
        ("redis+cluster://:hunter2@a?nonsense=1", "cannot be read"),
        ("redis+sentinel://:hunter2@a", "cannot be read"),
        ("redis+sentinel://:hunter2@a/one,one", "cannot be read"),
        ("redis+shards://:hunter2@a,a", "names a shard twice"),
        ("redis+shards://:hunter2@" + ",".join(f"h{at}" for at in range(65)), "at most 64"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_start_with_a_sentence_without_secrets(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        Config.from_env({"HERALD_REDIS_URL": url, **BROKER})
    assert "HERALD_REDIS_URL" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_several_primaries_need_a_broker_of_its_own() -> None:
    for url in ("redis+cluster://a", "redis+shards://a,b", "redis+sentinel://a/one,two"):
        with pytest.raises(ConfigError, match="HERALD_BROKER_URL"):
            Config.from_env({"HERALD_REDIS_URL": url})
        assert Config.from_env({"HERALD_REDIS_URL": url, **BROKER}).redis_url == url
    assert Config.from_env({"HERALD_REDIS_URL": "redis+sentinel://a/one"}).redis_url  # also Celery's broker


def test_slots_are_those_of_the_specification() -> None:
    assert slot_of_tag("123456789") == 0x31C3
    assert slot_of_key("herald:{abc}:log") == slot_of_key(b"x{abc}{y}") == slot_of_tag("abc")
    assert slot_of_key("{}abc") == slot_of_tag("{}abc")
    assert slot_of_key("a{bc") == slot_of_tag("a{bc")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_slots_are_divided_evenly_in_the_order_of_the_servers(count: int) -> None:
    places = [ServerAddress(f"h{number}", 1) for number in reversed(range(count))]
    topology = divided(places)
    assert topology.covers_all
    homes = [topology.home_of_slot(slot).place for slot in range(SLOTS)]
    assert list(dict.fromkeys(homes)) == places
    sizes = [homes.count(place) for place in places]
    assert max(sizes) - min(sizes) <= 1


def test_the_answer_of_a_cluster_gives_homes_and_replicas() -> None:
    answer = [
        [9000, SLOTS - 1, [b"b", 2, b"id2", []], [b"c", 3, b"id3", []]],
        [0, 8999, [b"", 1, b"id1", []]],
    ]
    topology = cluster_topology(answer, ServerAddress("asked", 9))
    assert topology.home_of_slot(0).place == ("asked", 1)
    assert topology.home_of_slot(9000) == (("b", 2), 1)
    assert topology.covers_all
    assert topology == cluster_topology(list(reversed(answer)), ServerAddress("asked", 9))
    assert topology != cluster_topology(answer, ServerAddress("other", 9))


@pytest.mark.parametrize("answer", [[[0, SLOTS, [b"a", 1]]], [[0]], [7], [[0, 1, None]], [[5, 4, [b"a", 1]]]])
def test_another_answer_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        cluster_topology(answer, ServerAddress("asked", 9))


def test_a_slot_without_a_primary_is_known_as_such() -> None:
    topology = cluster_topology([[1, SLOTS - 1, [b"a", 1]]], ServerAddress("a", 1))
    assert not topology.covers_all
    with pytest.raises(UnownedSlot):
        topology.home_of_slot(0)


@pytest.mark.parametrize(
    ("command", "key", "keys"),
    [
        (("GET", "a"), "a", ("a",)),
        (("EVALSHA", "sha", 2, "a", "b", "c"), "a", ("a", "b")),
        (("EVAL", "text", 0, "c"), None, ()),
        (("MGET", "a", "b"), "a", ("a", "b")),
        (("BLPOP", "a", "b", 1), "a", ("a", "b")),
        (("LMOVE", "a", "b", "LEFT", "RIGHT"), "a", ("a", "b")),
        (("SPUBLISH", "a", "b"), "a", ("a",)),
        (("CONFIG GET", "append*"), None, ()),
        (("PING",), None, ()),
    ],
)
def test_the_keys_of_a_command_are_found(command: tuple[Any, ...], key: Any, keys: tuple[Any, ...]) -> None:
    assert key_of_command(command) == key
    assert tuple(keys_of_command(command)) == keys


def test_sentinels_are_asked_with_credentials_of_their_own() -> None:
    own = "sentinel_user=her%26ald&sentinel_password=a+b%2Fc&sentinel_tls=1"
    found = data_plane_address(f"rediss+sentinel://u:p@a,b/one?{own}&db=3")
    assert found.sentinel_url_of(ServerAddress("::1", 26379)) == "rediss://her%26ald:a%2Bb%2Fc@[::1]:26379"
    assert found.url_of(ServerAddress("a", 6379)) == "rediss://u:p@a:6379/3"
    assert "a+b" not in repr(found)
    plain = data_plane_address("rediss+sentinel://u:p@a/one")
    assert plain.sentinel_url_of(ServerAddress("a", 26379)) == "redis://a:26379"
    only_password = data_plane_address("sentinel://a/one?sentinel_password=x")
    assert only_password.sentinel_url_of(ServerAddress("a", 1)) == "redis://:x@a:1"
    broker = broker_address("HERALD_REDIS_URL", f"rediss+sentinel://u:p;x@a,b/one?{own}&db=3")
    assert broker.url == "sentinel://u:p%3Bx@a:26379/3;sentinel://u:p%3Bx@b:26379/3"
    assert (broker.tls, broker.access) == (True, ("her&ald", "a+b/c", True))


@pytest.mark.parametrize(
    "parameters",
    ["sentinel_user=u", "sentinel_tls=yes", "sentinel_password=", "sentinel_password=a&sentinel_password=b", "other=1"],
)
@pytest.mark.parametrize("name", ["HERALD_REDIS_URL", "HERALD_BROKER_URL"])
def test_parameters_of_sentinels_that_cannot_be_are_refused(parameters: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} cannot be read.*sentinel_password=PASSWORD") as refused:
        Config.from_env({name: f"redis+sentinel://:hunter2@a/one?{parameters}"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        data_plane_address("redis+cluster://a?sentinel_password=x")
