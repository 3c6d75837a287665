"""Alarms and rules as events: the state before, followed by them, is the state after. And who may say what about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from eventing.audit.models import AuditEntry
from eventing.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, PreconditionFailed, QuotaExceeded
from eventing.operations.models import Alarm
from eventing.operations.rules.alarms import NOTE_CHARS_MAX, Changed, Cleared, Raised, Stated, Value
from eventing.operations.selectors.alarms import alarms_counted, alarms_open, alarms_page
from eventing.operations.services import alarms as service
from eventing.operations.services.alarm_mutes import alarm_mute, alarm_unmute
from eventing.operations.services.alarms import alarm_acknowledge, alarms_apply, alarms_purge
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.audience import AUDIENCES_MAX
from eventing.rps.rules.watches import rules_of
from eventing.rps.selectors.watches import rules_in_force, rules_stamp
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_update,
)
from eventing.rps.services.watches import domain_watches_replace
from tests.admin_rp.proving import Proof
from tests.replication.homes import ANN, ROOT

pytestmark = pytest.mark.usefixtures("planes")

LAG = {"lag": {"events": 5}, "severity": "critical", "for_s": 0}
AUDIENCE = {"label": "auditors", "at_least": 1}


def stated(rule: str, rp: str, detail: str = "It is behind.", about: str = "sub_1") -> Stated:
    values = (Value("events", 9, 5, "events"),)
    return Stated(rule, about, rp, "lag", "critical", detail, values, f"/rps/{rp}", datetime.now(UTC).timestamp() - 60)


def test_everything_that_happens_to_alarms_is_told() -> None:
    with Proof() as proof:
        row = rendezvous_point_create(principal=ANN, watch=[LAG], audience=[AUDIENCE])
    assert proof.types == ["rp.created", "watch.changed"]
    rule = rules_of(row.id, row.watch)[0].id
    with Proof(row.id) as proof:
        alarms_apply([Raised(stated(rule, row.id)), Raised(stated(rule, row.id, about="sub_2"))])
        alarms_apply([Raised(stated(rule, row.id))])
        alarms_apply([Changed(stated(rule, row.id, "It is further behind."))])
        (open_, *_) = alarms_open(rp=row.id)
        alarm_acknowledge(alarm_id=str(open_.id), principal=ROOT, note="on it")
        alarms_apply([Cleared(rule, "sub_2", "The rule is kept again."), Cleared(rule, "sub_2", "Again.")])
    assert proof.types == [
        "alarm.raised",
        "alarm.raised",
        "alarm.changed",
        "alarm.acknowledged",
        "alarm.cleared",
    ]
    with Proof(row.id) as proof:
        rendezvous_point_update(reference=row.id, principal=ANN, changes={"watch": [{**LAG, "for_s": 7}]})
        rendezvous_point_update(reference=row.id, principal=ANN, changes={"watch": None, "audience": []})
    assert proof.types == ["watch.changed", "watch.changed"]
    assert RendezvousPoint.objects.get(id=row.id).version == 1, "they are no part of the descriptor"
    assert rules_in_force().rps == ()
    with Proof(row.id) as proof:
        rendezvous_point_delete(reference=row.id, principal=ANN)
    assert proof.types == ["alarm.cleared", "rp.deleted"]
    assert not alarms_open()
    assert len(alarms_page(state="all").items) == 2


def test_rules_of_the_domain_are_told() -> None:
    with Proof() as proof:
        row = domain_watches_replace(principal=ROOT, watch=[{"history_quota": {"percent": 90}}])
        alarms_apply([Raised(stated(rules_of("", row.watch)[0].id, "", about=""))])
        domain_watches_replace(principal=ROOT, watch=[{"process_lag": {"ms": 9}}], versions=frozenset({1}))
        domain_watches_replace(principal=ROOT, watch=[{"process_lag": {"ms": 9}}])
    assert proof.types == ["watch.changed", "alarm.raised", "watch.changed"]
    with pytest.raises(PreconditionFailed):
        domain_watches_replace(principal=ROOT, watch=[], versions=frozenset({1}))
    with pytest.raises(Forbidden):
        domain_watches_replace(principal=ANN, watch=[])


def test_the_stamp_changes_with_the_rules_and_with_nothing_else() -> None:
    row = rendezvous_point_create(principal=ANN)
    stamps: list[Any] = [rules_stamp()]
    rendezvous_point_update(reference=row.id, principal=ANN, changes={"title": "Unwatched"})
    assert rules_stamp() == stamps[-1]
    several: tuple[dict[str, Any], ...] = (
        {"watch": [LAG]},
        {"audience": [AUDIENCE]},
        {"watch": []},
        {"name": "renamed"},
        {"audience": None},
    )
    for changes in several:
        rendezvous_point_update(reference=row.id, principal=ANN, changes=changes)
        assert rules_stamp() not in stamps[-1:]
        stamps.append(rules_stamp())


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": "a"},
        {"label": "", "at_least": 1},
        {"label": "a\n", "at_least": 1},
        {"label": "a", "at_least": 0},
        {"label": "a", "at_least": True},
        {"label": "a", "at_least": 1, "publishing": "ignore"},
        {"label": "a", "at_least": 1, "claims": {"role": {"like": "x"}}},
        {"label": "a", "at_least": 1, "issuer": "nobody"},
        {"label": "a", "at_least": 1, "of": "x"},
    ],
    ids=str,
)
def test_a_wrong_audience_is_refused_with_a_sentence(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^audience 1: .*\.$"):
        rendezvous_point_create(principal=ANN, audience=[wrong])


def test_audiences_and_watched_rps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [{"label": f"{n}", "at_least": 1} for n in range(AUDIENCES_MAX + 1)]
    for wrong in (many, [AUDIENCE, AUDIENCE], {"label": "a"}):
        with pytest.raises(InvalidRequest):
            rendezvous_point_create(principal=ANN, audience=wrong)
    monkeypatch.setattr("eventing.rps.services.watches.WATCHED_RPS_MAX", 1)
    watched = rendezvous_point_create(principal=ANN, watch=[LAG])
    with pytest.raises(QuotaExceeded):
        rendezvous_point_create(principal=ANN, watch=[LAG])
    rendezvous_point_update(reference=watched.id, principal=ANN, changes={"audience": [AUDIENCE]})


def test_acknowledging_is_for_operators_and_for_open_alarms() -> None:
    alarms_apply([Raised(stated("r" * 16, ""))])
    (row,) = alarms_open()
    with pytest.raises(Forbidden):
        alarm_acknowledge(alarm_id=str(row.id), principal=ANN)
    with pytest.raises(InvalidRequest):
        alarm_acknowledge(alarm_id=str(row.id), principal=ROOT, note="x" * (NOTE_CHARS_MAX + 1))
    for wrong in ("0", "x", "999999", "9" * 30):
        with pytest.raises(NotFound):
            alarm_acknowledge(alarm_id=wrong, principal=ROOT)
    alarms_apply([Cleared("r" * 16, "sub_1", "Done.")])
    with pytest.raises(Conflict):
        alarm_acknowledge(alarm_id=str(row.id), principal=ROOT)


def test_old_and_too_many_cleared_alarms_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    for age_s in (service.KEPT_S + 60, 300, 200, 100):
        at = now - timedelta(seconds=age_s)
        alarms_apply([Raised(stated("r" * 16, "", about=str(age_s)))], now=at)
        alarms_apply([Cleared("r" * 16, str(age_s), "Done.")], now=at)
    alarms_apply([Raised(stated("r" * 16, "", about="open"))], now=now - timedelta(days=400))
    assert alarms_purge(now=now) == 1
    monkeypatch.setattr(service, "KEPT_MAX", 2)
    assert alarms_purge(now=now) == 1
    assert set(Alarm.objects.values_list("about", flat=True)) == {"200", "100", "open"}


def test_more_alarms_are_forgotten_at_once_than_a_batch_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    then = datetime.now(UTC) - timedelta(days=40)
    monkeypatch.setattr(service, "PURGE_BATCH", 2)
    monkeypatch.setattr(service, "PURGE_ROUNDS_MAX", 3)
    for number in range(7):  # one that comes and goes each few seconds is many in the time between two purges
        alarms_apply([Raised(stated("r" * 16, "", about=str(number)))], now=then)
        alarms_apply([Cleared("r" * 16, str(number), "Done.")], now=then)
    assert (alarms_purge(), alarms_purge(), alarms_purge()) == (6, 1, 0)


def test_a_mute_holds_until_its_time_also_for_the_alarm_that_follows() -> None:
    row = rendezvous_point_create(principal=ANN, watch=[LAG])
    rule, now = rules_of(row.id, row.watch)[0].id, datetime.now(UTC)

    def raised() -> Alarm:
        alarms_apply([Raised(stated(rule, row.id))], now=now)
        return alarms_open(rp=row.id)[0]

    first = raised()
    with Proof(row.id) as proof:
        alarm_mute(alarm_id=str(first.id), principal=ROOT, for_s=600, reason="planned work", now=now)
        alarms_apply([Cleared(rule, "sub_1", "The rule is kept again.")], now=now)
        second = raised()
    assert proof.types == ["alarm.muted", "alarm.cleared", "alarm.raised"]
    assert second.id != first.id
    assert (second.muted_until, second.muted_by, second.mute_reason) == (
        now + timedelta(seconds=600),
        "root",
        "planned work",
    )
    assert alarms_counted(now) == {"open": 0, "critical": 0}
    assert alarms_counted(now + timedelta(seconds=601)) == {"open": 1, "critical": 1}, "it ends by itself"
    acts = {entry.action: entry for entry in AuditEntry.objects.filter(on_kind="alarm")}
    assert acts["alarm.mute"].who == "root"
    assert acts["alarm.mute"].details["reason"] == "planned work"

    with Proof(row.id) as proof:
        alarm_unmute(alarm_id=str(second.id), principal=ROOT, now=now)
        alarm_unmute(alarm_id=str(second.id), principal=ROOT, now=now)
        alarms_apply([Cleared(rule, "sub_1", "The rule is kept again.")], now=now)
        third = raised()
    assert proof.types == ["alarm.unmuted", "alarm.cleared", "alarm.raised"]
    assert third.muted_until is None
    for wrong in (59, 30 * 86_400 + 1):
        with pytest.raises(InvalidRequest):
            alarm_mute(alarm_id=str(third.id), principal=ROOT, for_s=wrong)
    with pytest.raises(Conflict):
        alarm_mute(alarm_id=str(first.id), principal=ROOT, for_s=600)
    with pytest.raises(Forbidden):
        alarm_mute(alarm_id=str(third.id), principal=ANN, for_s=600)
