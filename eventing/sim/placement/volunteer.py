"""A domain that may hold a replica: decides about invitations by its standing policy, catches up, serves, releases."""

from __future__ import annotations

from collections import deque
from typing import Any

from eventing.operations.placement.rules.invitations import InvitationAsked, InvitationPolicy, contradictions, judged
from eventing.overlay.load_rows import AMOUNT_MAX, DomainLoad
from eventing.overlay.machine import Chance, Fired, MessageReceived, SendMessage, SetTimer
from eventing.sim.placement.messages import (
    FAMOUS,
    CatchUp,
    CaughtUp,
    Desert,
    InvitationReply,
    Invited,
    InviteMore,
    LoadStated,
    Probed,
    ProbeReply,
    Published,
    Released,
    ServedLoad,
    StateLoad,
    VectorStated,
)

STATE_S = 60.0
"""Seconds between two statements of load (overlay/load_rows.py: change_s)."""
CATCH_UP_S = (1.0, 4.0)
"""Seconds in which a replica gets the history (guess)."""
DESERT_S = 45.0
"""Seconds for which a deserter serves."""
HOUR_S = 3600.0
HISTORY_BYTES = 1_000_000
HONEST, DROPS, DESERTS, STATES_NOTHING, STATES_ENDLESS, REFUSES, STALE, CIRCLES = (
    "honest",
    "drops",
    "deserts",
    "states-nothing",
    "states-endless",
    "refuses",
    "stale",
    "circles",
)


class Volunteer:
    """One domain.

    Args:
        sessions_max: readers that it can serve.

    Attributes:
        conduct: HONEST, or the way in which it lies; DROPS accepts and never serves, DESERTS stops after DESERT_S, STALE serves what it had
            when it began, CIRCLES redirects its readers (readers.py).
        serves: it holds the famous RP's replica and answers.
        sequence: of the last event that it has.
        held: replicas, by home and RP.
        refused: invitations by the reason of their refusal.
        storm_per_s: invitations that it sends itself, each second, to all domains in turn.
    """

    def __init__(self, me: int, sessions_max: int, domains: int) -> None:
        self.me = me
        self.conduct = HONEST
        self.serves = False
        self.sequence = 0
        self.held: dict[tuple[int, str], None] = {}
        self.refused: dict[str, int] = {}
        self.policy = InvitationPolicy(whom="peers")
        self.storm_per_s = 0
        self._domains = domains
        self._invited = 0
        self._asked: dict[int, deque[float]] = {}
        self._sessions = 0
        self._sessions_max = sessions_max

    def policy_set(self, policy: InvitationPolicy, *, stored_before: bool = False) -> bool:
        """Set the standing policy, as an administrator does; return whether it is in force.

        Args:
            stored_before: by a version that did not look for contradictions.
        """
        if contradictions(policy) and not stored_before:
            return False
        self.policy = policy
        return True

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input."""
        match given:
            case ServedLoad(sessions):
                self._sessions = sessions
            case Fired(StateLoad()):
                again = SetTimer(StateLoad(), STATE_S * (0.9 + 0.2 * chance.random()))
                return [SendMessage(0, LoadStated(self._stated())), again]
            case Fired(InviteMore()):
                return self._storm()
            case Fired(CatchUp()) if (0, FAMOUS) in self.held:
                self.serves = True
                deserts = [SetTimer(Desert(), DESERT_S)] if self.conduct == DESERTS else []
                return [SendMessage(0, CaughtUp()), *deserts]
            case Fired(Desert()):
                self.serves = False
            case MessageReceived(peer, Probed(sent_at)):
                return [SendMessage(peer, ProbeReply(sent_at))]
            case MessageReceived(peer, Invited(rp)):
                return self._judge(int(str(peer)), rp, now, chance)
            case MessageReceived(peer, Released()):
                self.held.pop((int(str(peer)), FAMOUS), None)
                self.serves = False
            case MessageReceived(peer, Published(sequence)) if self.serves:
                if self.conduct != STALE or not self.sequence:
                    self.sequence = sequence
                return [SendMessage(peer, VectorStated(self.sequence))]
        return []

    def _judge(self, home: int, rp: str, now: float, chance: Chance) -> list[Any]:
        asked = self._asked.setdefault(home, deque())
        while asked and asked[0] <= now - HOUR_S:
            asked.popleft()
        invitation = InvitationAsked(
            home=f"d{home}",
            host=True,
            history_bytes=HISTORY_BYTES,
            asked_last_hour=len(asked),
            replicas=len(self.held),
            replicas_of_home=sum(1 for holder, _ in self.held if holder == home),
            history_bytes_total=HISTORY_BYTES * len(self.held),
            pressure=self._sessions / self._sessions_max,
        )
        refusal = None if (home, rp) in self.held else judged(invitation, self.policy)
        asked.append(now)
        reason = "policy" if self.conduct == REFUSES else "" if refusal is None else refusal.reason
        if reason:
            self.refused[reason] = self.refused.get(reason, 0) + 1
            return [SendMessage(home, InvitationReply(reason))]
        self.held[home, rp] = None
        accepted: list[Any] = [SendMessage(home, InvitationReply(""))]
        if rp == FAMOUS and home == 0 and self.conduct != DROPS:
            least, most = CATCH_UP_S
            accepted.append(SetTimer(CatchUp(), least + (most - least) * chance.random()))
        return accepted

    def _storm(self) -> list[Any]:
        out: list[Any] = [SetTimer(InviteMore(), 1.0)]
        for _ in range(self.storm_per_s):
            self._invited += 1
            target = self._invited % self._domains
            if target not in (0, self.me):
                out.append(SendMessage(target, Invited(f"storm-{self._invited}")))
        return out

    def _stated(self) -> DomainLoad:
        if self.conduct == STATES_NOTHING:
            return DomainLoad()
        if self.conduct == STATES_ENDLESS:
            return DomainLoad(*(AMOUNT_MAX for _ in DomainLoad.__struct_fields__))
        return DomainLoad(sessions=self._sessions)
