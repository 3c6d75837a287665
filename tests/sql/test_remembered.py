"""sql/remembered.py: an answer is remembered while SQL does not change, whoever changes it, and no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.utils import timezone

from eventing.replication.models import SealHead
from eventing.sql import remembered as module
from eventing.sql.remembered import FEW, remembered, remembers
from tests.planes import in_threads

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="nothing is remembered with PostgreSQL")


class Asked:
    """A query of names, by what they begin with, that counts how often it is made.

    Args:
        during: called after each reading.
    """

    def __init__(self, during: Callable[[], object] = lambda: None) -> None:
        self.times = 0

        def names(begins: tuple[str, ...] = ("",)) -> list[str]:
            self.times += 1
            rows = SealHead.objects.filter(rp__startswith=begins[0])
            found = sorted(rows.values_list("rp", flat=True))
            during()
            return found

        self.names = remembered(names)


def add(name: str) -> None:
    SealHead.objects.create(rp=name, epoch="e", last=1, digest=b"", statement=b"", leaves=b"", sealed_at=timezone.now())


@pytest.fixture(autouse=True)
def _database(transactional_db: None) -> None:
    add("one")


@on_sqlite
def test_it_is_asked_again_after_a_change_only() -> None:
    asked = Asked()
    assert remembers()
    assert asked.names() == asked.names() == ["one"]
    assert asked.times == 1
    add("two")
    assert asked.names() == asked.names() == ["one", "two"]
    assert asked.times == 2


@on_sqlite
def test_a_change_of_another_thread_is_noticed_too() -> None:
    asked = Asked()
    assert asked.names() == ["one"]
    in_threads(1, lambda _: add("two"))
    assert asked.names() == ["one", "two"]


@on_sqlite
def test_all_threads_share_an_answer() -> None:
    asked = Asked()
    assert asked.names() == ["one"]
    assert in_threads(2, lambda _: asked.names()) == [["one"]] * 2
    assert asked.times == 1


@on_sqlite
def test_answers_differ_by_arguments() -> None:
    asked = Asked()
    assert [asked.names(("o",)), asked.names(("t",)), asked.names(begins=("t",)), asked.names()] == [
        ["one"],
        [],
        [],
        ["one"],
    ]
    assert [asked.names(("o",)), asked.names(("t",)), asked.names(begins=("t",)), asked.names()] == [
        ["one"],
        [],
        [],
        ["one"],
    ]
    assert asked.times == 4


@on_sqlite
def test_what_changed_while_it_was_read_is_read_again() -> None:
    changes = iter([lambda: in_threads(1, lambda _: add("two"))])
    asked = Asked(lambda: next(changes, lambda: None)())
    assert asked.names() == ["one"]
    assert asked.names() == asked.names() == ["one", "two"]


@on_sqlite
def test_an_answer_made_of_an_older_and_a_newer_one_is_not_remembered() -> None:
    names = Asked().names
    changes = iter([lambda: in_threads(1, lambda _: add("two"))])

    @remembered
    def twice() -> list[list[str]]:
        before = sorted(SealHead.objects.values_list("rp", flat=True))
        next(changes, lambda: None)()
        return [before, names()]

    assert names() == ["one"]
    assert twice() == [["one"], ["one", "two"]]
    assert twice() == [["one", "two"], ["one", "two"]]


def test_in_a_transaction_nothing_is_remembered() -> None:
    asked = Asked()
    with transaction.atomic():
        add("two")
        assert asked.names() == ["one", "two"]
        assert not remembers()
        transaction.set_rollback(True)
    assert asked.names() == ["one"]


def test_an_answer_about_many_is_not_remembered() -> None:
    asked = Asked()
    for _ in range(2):
        asked.names(("o",) * (FEW + 1))
    assert asked.times == 2


@on_sqlite
def test_at_most_so_many_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWERS_MAX", 3)
    asked = Asked()
    for name in "abcd":
        asked.names((name,))
    assert [asked.names(("d",)), asked.times] == [[], 4]
    asked.names(("a",))
    assert asked.times == 5


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite states whether something changed")
def test_other_databases_are_asked_each_time() -> None:
    assert not remembers()
    asked = Asked()
    assert asked.names() == asked.names() == ["one"]
    assert asked.times == 2
