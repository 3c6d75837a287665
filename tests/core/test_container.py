"""The container of a process: what it makes once, and what begins anew with another one."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eventing.core.container import fresh_container, memoized, per_process
from eventing.core.ports import Hook, NotConnectedError, Port


@per_process
def made() -> list[str]:
    """An object that changes."""
    return []


@Port
def name_of(number: int, /) -> str:
    """A port."""
    raise NotImplementedError


@Hook
def ended(number: int, /) -> None:
    """A hook."""


def test_an_object_is_made_once_and_anew_in_another_container() -> None:
    made().append("here")
    with fresh_container():
        assert made() == []
        made().append("there")
        assert made() == ["there"]
    assert made() == ["here"]


def test_threads_that_ask_at_once_get_the_same_object() -> None:
    barrier = threading.Barrier(8)
    calls: list[None] = []

    @per_process
    def slow() -> object:
        calls.append(None)
        threading.Event().wait(0.01)
        return object()

    def asked(_: int) -> object:
        barrier.wait(5)
        return slow()

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(asked, range(8)))) == 1
    assert len(calls) == 1


def test_a_slow_factory_holds_up_no_other_one() -> None:
    begun, ended = threading.Event(), threading.Event()

    @per_process
    def slow() -> bool:
        begun.set()
        return ended.wait(10)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(slow)
        assert begun.wait(10)
        assert made() == []
        ended.set()
        assert waiting.result(10)


def test_two_declarations_with_one_factory_are_two_objects() -> None:
    first, second = per_process(threading.Lock), per_process(threading.Lock)
    assert first() is first() is not second()


def test_a_factory_may_use_another_one() -> None:
    @per_process
    def outer() -> list[list[str]]:
        return [made()]

    assert outer()[0] is made()


def test_results_are_remembered_per_container_and_no_more_than_maxsize() -> None:
    calls: list[int] = []

    @memoized(maxsize=2)
    def double(number: int) -> int:
        calls.append(number)
        return 2 * number

    assert [double(number) for number in (1, 1, 2, 1, 3, 2)] == [2, 2, 4, 2, 6, 4]
    assert calls == [1, 2, 3, 2]
    with fresh_container():
        assert double(2) == 4
    assert calls == [1, 2, 3, 2, 2]


def test_what_is_connected_goes_on_in_a_fresh_container_and_what_is_connected_there_ends_with_it() -> None:
    numbers: list[int] = []
    name_of.connect(str)
    ended.connect(numbers.append)
    with fresh_container():
        assert name_of(7) == "7"
        name_of.connect(hex)
        ended.connect(lambda number: numbers.append(-number))
        ended(1)
        assert name_of(7) == "0x7"
    ended(2)
    assert (name_of(7), numbers) == ("7", [1, -1, 2])
    name_of.connect(None)
    with pytest.raises(NotConnectedError):
        name_of(7)


def test_a_forked_child_has_what_is_connected_and_no_object_of_its_parent() -> None:
    made().append("parent")
    name_of.connect(str)
    child = os.fork()
    if not child:
        os._exit(0 if made() == [] and name_of(7) == "7" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert made() == ["parent"]
