"""The periodic tasks: one service call each, safe to run twice and side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import wraps

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from eventing.access.services.revocations import revocations_purge
from eventing.audit.services import audit_purge
from eventing.membership.process.running import overlay_keep
from eventing.membership.services.directory import directory_forget
from eventing.membership.services.samples import overlay_sample
from eventing.operations.notification.services.sending import notices_send
from eventing.operations.placement.services.carrying import placement_carry_out
from eventing.operations.placement.services.decisions import decisions_purge
from eventing.operations.placement.services.invitations import invitations_purge
from eventing.operations.placement.services.planning import placement_plan
from eventing.operations.services.draining import drain_sweep
from eventing.operations.services.leases import leases_reap, leases_warn
from eventing.operations.services.reader_balancing import readers_balance
from eventing.outbox.services import outbox_relay
from eventing.peering.services.acquaintances import acquaintances_expire
from eventing.peering.services.peers import peers_expire
from eventing.peering.wire.hello import peers_greet
from eventing.records.retention import segments_purge
from eventing.replication.forwarding.outbound import forward as federation_forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.forwarding.wakeups import wake
from eventing.replication.homes.electing import elections_sweep
from eventing.replication.joining.sweeping import replicas_sweep
from eventing.replication.regions.upkeep import regions_sweep
from eventing.replication.reliability.sweeping import reliability_sweep
from eventing.replication.services.elector_states import consents_purge, elector_states_purge
from eventing.replication.services.replica_admissions import admissions_purge, documents_purge
from eventing.replication.services.replica_ends import ends_purge
from eventing.replication.services.sealing import seal_heads_purge
from eventing.reports.services.reports import reports_purge
from eventing.rest.idempotency_records import idempotency_purge
from eventing.rps.services.histories import histories_trim, logs_sweep
from eventing.store.errors import RedisError
from eventing.subscriptions.sharing.shared_subscriptions import subscriptions_sweep
from workers.fencing import run_fenced, run_of_task
from workers.measuring import domain_measured
from workers.reporting import reports_plan, reports_start
from workers.schedule import TASK_S_HARD, TASK_S_SOFT

AGAIN_S = 4.0
"""Seconds for one kind of old rows in a sweep; all kinds together stay well within TASK_S_SOFT."""

logger = logging.getLogger(__name__)


def periodic(function: Callable[[], None]) -> Callable[[], None]:
    """Make a task under the common time limits, and under its lease where a scheduler began it."""

    @wraps(function)
    def fenced() -> None:
        run = run_of_task()
        if run is None:
            function()
        else:
            run_fenced(run, function)

    task: Callable[[], None] = shared_task(soft_time_limit=TASK_S_SOFT, time_limit=TASK_S_HARD)(fenced)
    return task


@periodic
def reap_leases() -> None:
    """Remove RPs and subscriptions whose lease has expired."""
    _run(leases_reap, "reaped")
    _run(peers_expire, "removed expired")
    _run(acquaintances_expire, "ended acquaintances:")


@periodic
def notify_of_alarms() -> None:
    """Send messages about alarms to contact points."""
    _run(notices_send, "messages about alarms:")


@periodic
def warn_leases() -> None:
    """Report leases that expire soon."""
    _run(leases_warn, "warned of")


@periodic
def relay_outbox() -> None:
    """Carry out effects that a crash or an outage left in the outbox."""
    _run(outbox_relay, "relayed")


@periodic
def greet_peers() -> None:
    """Send due hellos to peers: this domain's stance and keys."""
    _run(peers_greet, "greeted")


@periodic
def sweep_replicas() -> None:
    """Offer links between replicas, send changes to peers, renew this domain's replicas, announce ended ones."""
    _run(replicas_sweep, "links, renewals and ends of replicas:")


@shared_task(soft_time_limit=TASK_S_SOFT, time_limit=TASK_S_HARD)
def forward(peer: str) -> None:
    """Send a peer the events that it lacks. Another task sends the rest of a long backlog."""
    try:
        if federation_forward(peer):
            wake(peer)
    except RedisError as error:
        logger.warning("forward to %s: Redis does not answer: %s", peer, error)


@periodic
def sweep_peers() -> None:
    """Enqueue forwarding that a lost wake-up, a crash or a failure left undone."""
    _run(peers_sweep, "woke forwarding to peers:")


@periodic
def keep_overlay() -> None:
    """Run the overlay in this process, on a thread of its own, unless another process does."""
    _run(overlay_keep, "")


@periodic
def sweep_regions() -> None:
    """Keep the links with domains that are no peers, and the acquaintances that follow from them."""
    _run(regions_sweep, "acquaintances began or ended:")


@periodic
def elect_homes() -> None:
    """Probe homes whose successors this domain elects, and stand for election where they are silent."""
    _run(elections_sweep, "homes of rendezvous points taken over:")


@periodic
def drain() -> None:
    """Hand over homes, readers and deliveries while the domain drains."""
    _run(drain_sweep, "homes handed over:")


@periodic
def plan_routes() -> None:
    """Measure links and arrivals, and plan the routes of rendezvous points with a target reliability; in the forwarder, which measures."""
    _run(reliability_sweep, "decisions about routes changed:")


@periodic
def sweep_subscriptions() -> None:
    """Deliver shared subscriptions, or take them over."""
    _run(subscriptions_sweep, "")


@periodic
def measure_domain() -> None:
    """Write the metrics of the domain's state in SQL; in the forwarder, which is one process."""
    domain_measured()


@periodic
def sample_overlay() -> None:
    """Sample the overlay for `overlay.admin`."""
    _run(overlay_sample, "sampled the overlay:")


@periodic
def balance_readers() -> None:
    """Move readers to other domains while this one has more than its bounded share."""
    _run(readers_balance, "began moves of readers:")


@periodic
def start_reports() -> None:
    """Start the process that makes the next report, unless one is being made."""
    _run(reports_start, "started reports:")


@periodic
def plan_reports() -> None:
    """Queue the reports of finished hours and days, and of those with late records."""
    _run(reports_plan, "queued reports:")


@periodic
def plan_placement() -> None:
    """Decide where replicas of this domain's RPs are to be."""
    _run(placement_plan, "decided about placement:")


@periodic
def carry_out_placement() -> None:
    """Invite and release replicas as decided."""
    _run(placement_carry_out, "carried out decisions about placement:")


@periodic
def trim_histories() -> None:
    """Trim histories by age."""
    _run(histories_trim, "trimmed")


@periodic
def sweep() -> None:
    """Remove old rows and files (SWEPT). A failure of one kind does not stop the others; the task fails at the end."""
    failed: list[Exception] = []
    for service, done in SWEPT:
        try:
            _run(service, done)
        except Exception as error:
            logger.exception("%s failed", service.__name__)
            failed.append(error)
    if failed:
        raise failed[0]


def _again(purge: Callable[[], int]) -> Callable[[], int]:
    """Return `purge` repeated until nothing is left, or AGAIN_S have passed: more may accumulate between sweeps than
    one batch.
    """

    @wraps(purge)
    def purged() -> int:
        until, count = time.monotonic() + AGAIN_S, 0
        while more := purge():
            count += more
            if time.monotonic() >= until:
                break
        return count

    return purged


def _run(service: Callable[[], int], done: str) -> None:
    """Call `service`; an outage of Redis or a time limit is only logged: the next run continues where this one ended."""
    try:
        count = service()
    except RedisError as error:
        logger.warning("%s: Redis does not answer: %s", service.__name__, error)
    except SoftTimeLimitExceeded:
        logger.warning(
            "%s: not finished within %d s, or its lease; the next run continues", service.__name__, TASK_S_SOFT
        )
    else:
        if count and done:
            logger.info("%s %d", done, count)


SWEPT: tuple[tuple[Callable[[], int], str], ...] = (
    (_again(idempotency_purge), "forgot idempotency keys"),
    (_again(revocations_purge), "forgot revocations"),
    (_again(audit_purge), "removed old audit entries"),
    (_again(segments_purge), "removed old segments of access records"),
    (_again(reports_purge), "removed old reports"),
    (_again(seal_heads_purge), "forgot seal heads"),
    (logs_sweep, "swept logs"),
    (_again(decisions_purge), "forgot decisions about placement"),
    (_again(invitations_purge), "forgot invitations"),
    (_again(ends_purge), "forgot ended replicas"),
    (admissions_purge, "forgot admissions"),
    (_again(elector_states_purge), "forgot promises of an elector"),
    (_again(consents_purge), "forgot consents to moves of homes"),
    (documents_purge, "forgot domain documents"),
    (_again(directory_forget), "forgot domains of the overlay"),
)
"""Parts of a sweep, with their words for the log."""
