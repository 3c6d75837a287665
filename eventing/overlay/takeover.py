"""Takeover of shared durable subscriptions: one holder delivers, the others take over when its lease expires. Pure.

Terms and leases as in leader leases (Gray and Cheriton, "Leases", 1989; terms as in Raft, section 5.1), without a
quorum: a holder that cannot reach any other continues. So during a partition more than one may deliver (at least once,
never lost); after it the highest term prevails and the others stand down.

    newcomer/first -> [the deliverer's lines arrive: `on_line`] -> [its lease expires, and this holder is next: `takes_over`] -> the
    others are asked which holder delivers -> [none does: `tick`] -> delivers, renewing by a beat every third of the lease
    -> [a line with a higher term arrives] -> stands down

In all functions `rules` are the agreed parameters, `me` is this holder's domain, and `standing` its state.

The others are asked because a holder that was away has missed lines, and would take over from one that delivers (the
pre-vote of Ongaro, "Consensus: Bridging Theory and Practice", 2014, section 9.6).

Laws: a line counts once, when it is newer in (term, place in the order of succession, beat) than all before; so lines
may be lost, repeated and late. A holder's own lease expires no later than others assume, since it counts from before
the line was sent: no holder takes over from one that still delivers and can be reached. Only durations cross between
domains, never times. All times here are milliseconds of the holder's own clock.
"""

from __future__ import annotations

from typing import NamedTuple

RENEW_AFTER = 3  # the lease is renewed after one third of it: two beats may be lost
STEPS = 4  # a step of succession is a fourth of the lease: longer than a line takes between connected holders
TERM_MAX = 2**53 - 1  # exact in every JSON reader


class TakeoverRules(NamedTuple):
    """Agreed parameters: the holders in the order of succession, and the length of the delivery lease."""

    holders: tuple[str, ...]
    lease_ms: int


class HolderStanding(NamedTuple):
    """State of a holder: the deliverer and its term, its number of beats, and the expiry of its lease on this clock."""

    term: int
    deliverer: str
    beat: int
    until_ms: int


class DeliveryLine(NamedTuple):
    """A deliverer's message, directly or relayed. `left_ms` is the remaining lease as the relaying domain saw it."""

    term: int
    deliverer: str
    beat: int
    left_ms: int


def first(rules: TakeoverRules, me: str, now_ms: int) -> HolderStanding:
    """Return the initial standing at the domain that created the subscription: it delivers."""
    return HolderStanding(1, me, 1, now_ms + rules.lease_ms)


def newcomer(rules: TakeoverRules, now_ms: int) -> HolderStanding:
    """Return the standing of a holder without (or no longer with) any state: it waits for a whole lease before it acts."""
    return HolderStanding(0, "", 0, now_ms + rules.lease_ms)


def delivers(standing: HolderStanding, me: str, now_ms: int) -> bool:
    """Return True if this holder delivers now."""
    return standing.deliverer == me and now_ms < standing.until_ms


def elsewhere(standing: HolderStanding, me: str, now_ms: int) -> str:
    """Return the other holder that delivers now, as far as known here; empty if none is known."""
    return standing.deliverer if standing.deliverer != me and now_ms < standing.until_ms else ""


def newer(rules: TakeoverRules, standing: HolderStanding, line: DeliveryLine) -> bool:
    """Return True if a line is newer than the standing."""
    if line.deliverer not in rules.holders or not 0 < line.term <= TERM_MAX:
        return False
    return _key(rules, line.term, line.deliverer, line.beat) > _key(
        rules, standing.term, standing.deliverer, standing.beat
    )


def on_line(rules: TakeoverRules, me: str, standing: HolderStanding, line: DeliveryLine, now_ms: int) -> HolderStanding:
    """Process a line. An own line that this holder does not remember (its memory was lost) restores the term, but no
    right to deliver."""
    if not newer(rules, standing, line):
        return standing
    left_ms = 0 if line.deliverer == me else min(max(line.left_ms, 0), rules.lease_ms)
    return HolderStanding(line.term, line.deliverer, line.beat, now_ms + left_ms)


def takes_over(rules: TakeoverRules, me: str, standing: HolderStanding, now_ms: int) -> bool:
    """Return True if `tick` would take over now. The reachable others must be asked first, and their answers processed."""
    return tick(rules, me, standing, now_ms).term > standing.term


def tick(rules: TakeoverRules, me: str, standing: HolderStanding, now_ms: int) -> HolderStanding:
    """Advance with time: the deliverer's next beat, or a takeover after the lease has expired and this holder is next.

    A change must be written before it is sent. A late call is harmless: an own lease that expired in the meantime (the
    process was suspended) is not renewed, because another holder may deliver by now.
    """
    if standing.until_ms - now_ms > rules.lease_ms:  # the clock was set back
        standing = standing._replace(until_ms=now_ms + rules.lease_ms)
    if now_ms < due_ms(rules, me, standing, now_ms):
        return standing
    if delivers(standing, me, now_ms):
        return standing._replace(beat=standing.beat + 1, until_ms=now_ms + rules.lease_ms)
    return HolderStanding(standing.term + 1, me, 1, now_ms + rules.lease_ms) if standing.term < TERM_MAX else standing


def due_ms(rules: TakeoverRules, me: str, standing: HolderStanding, now_ms: int) -> int:
    """Return when `tick` has something to do, unless a line arrives before."""
    if delivers(standing, me, now_ms):
        return standing.until_ms - rules.lease_ms + rules.lease_ms // RENEW_AFTER
    return standing.until_ms + _stagger_ms(rules, me, standing)


def _stagger_ms(rules: TakeoverRules, me: str, standing: HolderStanding) -> int:
    """Return the delay of this holder's takeover after the expiry: holders in their order, the one whose lease expired last."""
    order = [holder for holder in rules.holders if holder != standing.deliverer]
    if me not in order:
        order.append(me)
    return (order.index(me) + 1) * rules.lease_ms // STEPS


def _key(rules: TakeoverRules, term: int, deliverer: str, beat: int) -> tuple[int, int, int]:
    """Order lines by term; of two that began the same term, the earlier in the order of succession prevails."""
    place = rules.holders.index(deliverer) if deliverer in rules.holders else len(rules.holders)
    return term, -place, beat
