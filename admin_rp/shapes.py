"""Shapes of the states of the domain and of an RP, which snapshots show and administrative events change."""

from __future__ import annotations

from typing import Annotated

from eventing.core.shapes import Count, Moment, Number, Shape, doc, one_of
from eventing.operations.shapes import AlarmData, DomainCounts, GatewayLoadRow, RedisLoad, RpLoadRow
from eventing.peering.shapes import DeliveryData, MisbehaviourData, PeerData, TrafficData
from eventing.reports.shapes import ReportRunData
from eventing.rps.shapes import LogExtent, RecentRpData, RendezvousPointData, WatchRuleData
from eventing.subscriptions.push.rules.endpoint_states import EndpointState
from eventing.subscriptions.shapes import SubscriptionData


class DomainName(Shape):
    """The domain."""

    name: str
    version: Annotated[str, doc("Version of the software.")]


class TrafficRow(TrafficData):
    """The exchange with a peer in the last interval."""

    interval_s: Number
    at: Annotated[Moment | None, doc("Length of the interval, seconds; null: not sampled recently.")]


class PeerRow(PeerData):
    """A peer, the delivery to it and the traffic with it."""

    delivery: DeliveryData
    traffic: TrafficRow


class AcquaintanceRow(Shape):
    """A domain that is no peer and with which events are exchanged, at rendezvous points to which both are admitted."""

    acquaintance: Annotated[str, doc("The domain's name.")]
    url: Annotated[str, doc("Address of its gateways.")]
    fingerprint: Annotated[str, doc("The kid of its first key, as the directory names it.")]
    since: Moment


class QuarantineRow(Shape):
    """A domain whose events are refused."""

    origin: str
    why: str
    since: Moment


class DomainState(Shape):
    """The state of the domain."""

    domain: DomainName
    counts: DomainCounts
    redis: RedisLoad
    gateways: dict[str, GatewayLoadRow]
    peers: dict[str, PeerRow]
    acquaintances: dict[str, AcquaintanceRow]
    alarms: dict[str, AlarmData]
    watches: dict[str, WatchRuleData]
    quarantines: dict[str, QuarantineRow]
    misbehaviour: dict[str, MisbehaviourData]
    reports: dict[str, ReportRunData]
    recent_rps: dict[str, RecentRpData]


class LagRow(Shape):
    """Progress of a durable subscription; all null: not sampled yet."""

    events: Count | None
    lost: Count | None
    oldest_at: Moment | None
    acknowledged: str | None
    at: Moment | None


class EndpointStateRow(Shape):
    """State of an endpoint; all null: the events are pulled."""

    state: Annotated[str | None, one_of(*(one.value for one in EndpointState))]
    since: Moment | None


class SubscriptionRow(SubscriptionData):
    """A durable subscription, its lag, and the state of its endpoint."""

    lag: LagRow
    endpoint: EndpointStateRow


class HistoryRow(LogExtent):
    """The extent of the log, as sampled."""

    at: Moment


class ProgressRow(Shape):
    """Progress of a replica; all null: not sampled yet."""

    vector: dict[str, int] | None
    behind: Count | None
    at: Moment | None


class ReplicaRow(Shape):
    """A replica."""

    domain: str
    home: str
    expires_at: Annotated[Moment | None, doc("End of the admission; null: the home's own replica.")]
    progress: ProgressRow


class RpState(Shape):
    """The state of an RP."""

    rp: Annotated[RendezvousPointData | None, doc("The RP; null: there is no such RP.")]
    subscriptions: dict[str, SubscriptionRow]
    load: Annotated[dict[str, RpLoadRow], doc("Load by gateway.")]
    history: HistoryRow | None
    replicas: dict[str, ReplicaRow]
    alarms: dict[str, AlarmData]
    watches: dict[str, WatchRuleData]


class DomainSnapshot(Shape):
    """The state of the domain at a place of its administrative log."""

    cursor: Annotated[str, doc("Cursor of the administrative log from which to continue.")]
    state: DomainState


class RpSnapshot(Shape):
    """The state of an RP at a place of its administrative log."""

    cursor: Annotated[str, doc("Cursor of the administrative log from which to continue.")]
    state: RpState
