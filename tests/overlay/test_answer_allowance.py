"""A peer that asks again and again gets no more than some copies of the directory."""

from __future__ import annotations

from eventing.overlay.answer_allowance import (
    ALLOWANCE_COPIES,
    ALLOWANCE_RECORDS,
    ALLOWANCE_S,
    PEERS_MAX,
    AnswerAllowance,
)
from eventing.overlay.directory import LISTED_MAX
from eventing.overlay.directory_messages import Compare, RangeEntries, Records, Want
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.machine import MessageReceived, SendMessage
from eventing.sim.federation import directory_make, mixed, record_make
from tests.overlay.test_directory import CHANCE


def test_a_peer_has_the_directory_twice_and_others_have_their_own_allowance() -> None:
    allowance, most = AnswerAllowance(), ALLOWANCE_COPIES * 100 + ALLOWANCE_RECORDS
    assert sum(allowance.take("a", 100, 100, 1.0) for _ in range(50)) == most
    assert allowance.take("b", 100, 100, 1.0) == 100
    assert allowance.take("a", 100, 100, ALLOWANCE_S + 1.0) == 100


def test_beyond_the_bound_peers_share_an_allowance() -> None:
    allowance = AnswerAllowance()
    granted = [allowance.take(peer, 1000, 0, 1.0) for peer in range(2 * PEERS_MAX)]
    assert granted[:PEERS_MAX] == [1000] * PEERS_MAX
    assert sum(granted[PEERS_MAX:]) == ALLOWANCE_RECORDS


def test_an_empty_directory_stated_again_and_again_gets_no_more_than_the_allowance() -> None:
    directory = directory_make(0, DirectoryTable(mixed))
    directory.fill(record_make(domain, int(20_000 * 86_400.0) - 1, 20_000 * 86_400.0 - 1) for domain in range(400))
    sent = 0
    for _ in range(40):
        for message in (Want(tuple(range(LISTED_MAX))), RangeEntries((0, *range(273, 528)), ()), Compare(((0, 0),))):
            out = directory.handle(MessageReceived(7, message), 1.0, CHANCE, ())
            sent += sum(
                len(one.message.records)
                for one in out
                if isinstance(one, SendMessage) and isinstance(one.message, Records)
            )
    assert sent == ALLOWANCE_COPIES * 400 + ALLOWANCE_RECORDS


def test_entries_of_the_whole_directory_are_not_answered_at_once() -> None:
    directory = directory_make(0, DirectoryTable(mixed))
    directory.fill(record_make(domain, int(20_000 * 86_400.0) - 1, 20_000 * 86_400.0 - 1) for domain in range(50))
    assert directory.handle(MessageReceived(7, RangeEntries((0,) * 200, ())), 1.0, CHANCE, ()) == []
