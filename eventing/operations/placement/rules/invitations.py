"""Standing policy for invitations: whose rendezvous points this domain replicates without a person's decision, and how much. Pure.

An invitation states the history that is wanted and the load that is expected, as far as the inviting domain states them. It is
accepted if a rule of the policy admits it and no bound is exceeded; else it is refused with the first reason.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from eventing.core.names import DOMAIN_PATTERN

FROM_MAX = 256  # bound: domains that a policy names, each; the policy is refused
REPLICAS_MAX = 10_000
BYTES_MAX = 2**50
PER_HOUR_MAX = 3600
TRUSTED, PEERS, NAMED, NOBODY = "trusted-peers", "peers", "named", "nobody"
WHOM = (TRUSTED, PEERS, NAMED, NOBODY)
"""From whom invitations are accepted: peers trusted with `host` (the default), all active peers, named peers, nobody."""

DomainName = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class InvitationPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The standing policy of a domain.

    Attributes:
        whom: of WHOM.
        named: domains whose invitations are accepted, with "named".
        refused: domains whose invitations are refused, whatever `whom` is.
        replicas_max: most replicas by invitation at a time, of all homes.
        replicas_per_home_max: most of one home.
        history_bytes_max: most history of one replica; a longer one is kept no further than this.
        history_bytes_total_max: most history of all replicas by invitation.
        events_per_s_max: most events expected for one replica.
        per_home_per_hour_max: most invitations of one home in an hour, refused ones included.
        pressure_max_percent: above this pressure of the own domain nothing is accepted.
    """

    whom: str = TRUSTED
    named: Annotated[tuple[DomainName, ...], msgspec.Meta(max_length=FROM_MAX)] = ()
    refused: Annotated[tuple[DomainName, ...], msgspec.Meta(max_length=FROM_MAX)] = ()
    replicas_max: Annotated[int, msgspec.Meta(ge=0, le=REPLICAS_MAX)] = 200
    replicas_per_home_max: Annotated[int, msgspec.Meta(ge=0, le=REPLICAS_MAX)] = 50
    history_bytes_max: Annotated[int, msgspec.Meta(ge=0, le=BYTES_MAX)] = 256 * 2**20
    history_bytes_total_max: Annotated[int, msgspec.Meta(ge=0, le=BYTES_MAX)] = 4 * 2**30
    events_per_s_max: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 1000
    per_home_per_hour_max: Annotated[int, msgspec.Meta(ge=1, le=PER_HOUR_MAX)] = 60
    pressure_max_percent: Annotated[int, msgspec.Meta(ge=1, le=100)] = 80


class InvitationAsked(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation, with what the inviting domain has here already.

    Attributes:
        home: the inviting domain.
        host: it is trusted with `host`.
        history_bytes: history of the RP; None: it states no bound by bytes.
        events_per_s: expected; None: not stated.
        asked_last_hour: invitations of this home in the last hour, before this one.
        replicas, replicas_of_home: by invitation, held now.
        history_bytes_total: reserved for them.
        pressure: of this domain, 0 or more; None: not measured.
    """

    home: str
    host: bool
    history_bytes: int | None = None
    events_per_s: float | None = None
    asked_last_hour: int = 0
    replicas: int = 0
    replicas_of_home: int = 0
    history_bytes_total: int = 0
    pressure: float | None = None


class InvitationRefused(msgspec.Struct, frozen=True):
    """A refusal.

    Attributes:
        reason: a code.
        detail: one sentence.
        later: it may be accepted later; else not before the policy changes.
    """

    reason: str
    detail: str
    later: bool


def contradictions(policy: InvitationPolicy) -> list[str]:
    """Return what a policy contradicts itself in, a sentence each; empty: nothing."""
    found = []
    if policy.whom not in WHOM:
        found.append(f"whom must be one of {', '.join(WHOM)}.")
    both = [name for name in policy.named if name in policy.refused]
    if both:
        found.append(f"named and refused both contain {', '.join(both)}.")
    if policy.whom == NAMED and not policy.named:
        found.append("whom is 'named', but named is empty, so that nobody is accepted: say 'nobody', or name a domain.")
    if policy.whom != NAMED and policy.named:
        found.append(f"named has domains, but whom is {policy.whom!r}, so that they have no effect.")
    if policy.replicas_per_home_max > policy.replicas_max:
        found.append(
            f"replicas_per_home_max is {policy.replicas_per_home_max}, more than replicas_max, which is {policy.replicas_max}."
        )
    if policy.history_bytes_max > policy.history_bytes_total_max:
        found.append(
            f"history_bytes_max is {policy.history_bytes_max}, more than history_bytes_total_max, which is "
            f"{policy.history_bytes_total_max}."
        )
    accepts = policy.whom != NOBODY
    for name in ("replicas_max", "replicas_per_home_max", "history_bytes_max"):
        if accepts and getattr(policy, name) == 0:
            found.append(f"{name} is 0, so that nothing is accepted, but whom is {policy.whom!r}: say 'nobody'.")
    invalid = [name for name in (*policy.named, *policy.refused) if not DOMAIN_PATTERN.fullmatch(name)]
    if invalid:
        found.append(f"{', '.join(map(repr, invalid))} cannot be the name of a domain.")
    return found


def judged(asked: InvitationAsked, policy: InvitationPolicy) -> InvitationRefused | None:
    """Return why an invitation is refused; None: it is accepted."""
    if asked.asked_last_hour >= policy.per_home_per_hour_max:
        return InvitationRefused(
            "too-many",
            f"{asked.home} has sent {asked.asked_last_hour} invitations in the last hour, the most there may be.",
            True,
        )
    if not _whom(asked, policy):
        hint = (
            f" Its administrator can allow them: herald peer change {asked.home} --host"
            if policy.whom == TRUSTED
            else ""
        )
        return InvitationRefused(
            "not-trusted", f"The standing policy accepts no invitations from {asked.home}.{hint}", False
        )
    if asked.pressure is not None and 100 * asked.pressure > policy.pressure_max_percent:
        return InvitationRefused(
            "busy",
            f"This domain's pressure is {asked.pressure:.0%}; above {policy.pressure_max_percent} % it accepts no invitations.",
            True,
        )
    if asked.replicas >= policy.replicas_max:
        return InvitationRefused("full", f"{asked.replicas} replicas are held by invitation, which is the most.", True)
    if asked.replicas_of_home >= policy.replicas_per_home_max:
        return InvitationRefused(
            "home-full",
            f"{asked.replicas_of_home} replicas of {asked.home} are held, which is the most of one home.",
            True,
        )
    if asked.events_per_s is not None and asked.events_per_s > policy.events_per_s_max:
        return InvitationRefused(
            "rate", f"{asked.events_per_s:g} events/s are expected; {policy.events_per_s_max} are the most.", False
        )
    if asked.history_bytes_total + history_granted(asked.history_bytes, policy) > policy.history_bytes_total_max:
        return InvitationRefused("history", "The history for replicas by invitation is reserved.", True)
    return None


def history_granted(wanted: int | None, policy: InvitationPolicy) -> int:
    """Return the bytes of history that a replica gets."""
    return policy.history_bytes_max if wanted is None else min(wanted, policy.history_bytes_max)


def _whom(asked: InvitationAsked, policy: InvitationPolicy) -> bool:
    if asked.home in policy.refused:
        return False
    if policy.whom == TRUSTED:
        return asked.host
    return policy.whom == PEERS or (policy.whom == NAMED and asked.home in policy.named)
