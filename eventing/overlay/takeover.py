"""Which holder of a shared durable subscription delivers: one does, the others take over when its lease lapses. Pure.

Terms and leases as in leader leases (Gray and Cheriton, "Leases", 1989; terms as in Raft, section 5.1), without a quorum:
a holder that nobody else can reach goes on. So while holders cannot talk, more than one may deliver (at least once,
never lost); when they can again, the highest term stays and the others stand down.

    newcomer/first -> [deliverer's lines come: `heard`] -> [its lease lapses, and our turn has come: `takes_over`] -> the
    others are asked who delivers -> [nobody does: `tick`] -> delivers, renewing by a beat every third of the lease
    -> [a higher term is heard] -> stands down

The others are asked because one that was away does not know what was said meanwhile, and would take over from one that
delivers (the pre-vote of Ongaro, "Consensus: Bridging Theory and Practice", 2014, section 9.6).

Laws: a line counts once, when it is newer in (term, place in the order of succession, beat) than all before; so lines may
be lost, repeated and late. A holder's own lease ends no later than others take it to end, since it counts from before
the line was sent: nobody takes over from one who still delivers and is heard. Only durations cross between domains, never
times. All times here are milliseconds of the holder's own clock.
"""

from __future__ import annotations

from typing import NamedTuple

RENEW_AFTER = 3  # the lease is renewed after one third of it: two beats may be lost
STEPS = 4  # a step of succession is one fourth of the lease: longer than a line takes between holders that can talk
TERM_MAX = 2**53 - 1  # exact in every JSON reader


class Rules(NamedTuple):
    """What holders agree on: who they are, in the order of succession, and how long the lease to deliver is."""

    holders: tuple[str, ...]
    lease_ms: int


class Standing(NamedTuple):
    """What a holder knows: who delivers in which term, how many beats it gave, and when its lease lapses here."""

    term: int
    deliverer: str
    beat: int
    until_ms: int


class Line(NamedTuple):
    """What a deliverer says, however it came here. `left_ms` is how much of its lease whoever passed it on saw left."""

    term: int
    deliverer: str
    beat: int
    left_ms: int


def first(rules: Rules, me: str, now_ms: int) -> Standing:
    """The standing of the holder where the subscription is created: it delivers."""
    return Standing(1, me, 1, now_ms + rules.lease_ms)


def newcomer(rules: Rules, now_ms: int) -> Standing:
    """The standing of a holder that knows nothing, or nothing any more: it listens for a whole lease before it acts."""
    return Standing(0, "", 0, now_ms + rules.lease_ms)


def delivers(standing: Standing, me: str, now_ms: int) -> bool:
    """Whether this holder delivers now."""
    return standing.deliverer == me and now_ms < standing.until_ms


def elsewhere(standing: Standing, me: str, now_ms: int) -> str:
    """The other holder that delivers now, as far as is known here; empty if none is known to."""
    return standing.deliverer if standing.deliverer != me and now_ms < standing.until_ms else ""


def newer(rules: Rules, standing: Standing, line: Line) -> bool:
    """Whether a line says more than is known."""
    if line.deliverer not in rules.holders or not 0 < line.term <= TERM_MAX:
        return False
    return _key(rules, line.term, line.deliverer, line.beat) > _key(
        rules, standing.term, standing.deliverer, standing.beat
    )


def heard(rules: Rules, me: str, standing: Standing, line: Line, now_ms: int) -> Standing:
    """Take in a line. One of our own that we do not remember (memory was lost) teaches us its term, and no right to deliver."""
    if not newer(rules, standing, line):
        return standing
    left_ms = 0 if line.deliverer == me else min(max(line.left_ms, 0), rules.lease_ms)
    return Standing(line.term, line.deliverer, line.beat, now_ms + left_ms)


def takes_over(rules: Rules, me: str, standing: Standing, now_ms: int) -> bool:
    """Whether `tick` would take over now. The others that can be reached are to be asked first, and their answers heard."""
    return tick(rules, me, standing, now_ms).term > standing.term


def tick(rules: Rules, me: str, standing: Standing, now_ms: int) -> Standing:
    """What time brings: the next beat of who delivers, or taking over once the lease has lapsed and our turn has come.

    What changed is to be written before it is sent. Called late, it does no harm: a lease of our own that lapsed meanwhile
    (the process stood still) is not renewed, because others may deliver by now.
    """
    if standing.until_ms - now_ms > rules.lease_ms:  # the clock was set back
        standing = standing._replace(until_ms=now_ms + rules.lease_ms)
    if now_ms < due_ms(rules, me, standing, now_ms):
        return standing
    if delivers(standing, me, now_ms):
        return standing._replace(beat=standing.beat + 1, until_ms=now_ms + rules.lease_ms)
    return Standing(standing.term + 1, me, 1, now_ms + rules.lease_ms) if standing.term < TERM_MAX else standing


def due_ms(rules: Rules, me: str, standing: Standing, now_ms: int) -> int:
    """When `tick` has something to do, if no line comes before."""
    if delivers(standing, me, now_ms):
        return standing.until_ms - rules.lease_ms + rules.lease_ms // RENEW_AFTER
    return standing.until_ms + _stagger_ms(rules, me, standing)


def _stagger_ms(rules: Rules, me: str, standing: Standing) -> int:
    """How long after the lapse our turn comes: the holders in their order, who lapsed last."""
    order = [holder for holder in rules.holders if holder != standing.deliverer]
    if me not in order:
        order.append(me)
    return (order.index(me) + 1) * rules.lease_ms // STEPS


def _key(rules: Rules, term: int, deliverer: str, beat: int) -> tuple[int, int, int]:
    """Terms decide; two that began the same term at once are told apart by their place in the order, earlier ones first."""
    place = rules.holders.index(deliverer) if deliverer in rules.holders else len(rules.holders)
    return term, -place, beat
