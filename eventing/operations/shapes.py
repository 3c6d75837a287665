"""Shapes of answers for operators: alarms, watch rules, sessions, leases, limits."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from eventing.access.rules.limits import LimitAnswer
from eventing.core.shapes import Count, Moment, Number, PageAnswer, Positive, Shape, doc, one_of, page_of
from eventing.operations.rules.alarms import HOMES, PLACEMENT
from eventing.rps.rules.watches import AUDIENCE, KINDS, SEVERITIES
from eventing.rps.shapes import LogExtent

VALUES_MAX = 4
HOT_RPS = 20


class MeasuredValue(Shape):
    """A measured value and its limit."""

    name: Annotated[str, doc("Name of the measured quantity.")]
    value: Annotated[float, doc("Measured value, in `unit`.")]
    limit: Annotated[float, doc("Limit set by the rule, in `unit`.")]
    unit: Annotated[str, doc("Unit: events, ends, s, ms, % or readers.")]


class AlarmAcknowledged(Shape):
    """The acknowledgement of an alarm."""

    at: Moment
    by: Annotated[str, doc("Identity of the operator.")]
    note: Annotated[str, doc("Note for people; may be empty.")]


class AlarmMuted(Shape):
    """The mute of an alarm: nobody is notified of it."""

    until: Annotated[Moment, doc("When the mute ends by itself.")]
    by: Annotated[str, doc("Identity of the operator.")]
    reason: Annotated[str, doc("Reason, for people; may be empty.")]


class AlarmCleared(Shape):
    """The end of an alarm."""

    at: Moment
    why: Annotated[str, doc("Reason in one sentence.")]


class AlarmData(Shape):
    """An alarm in force."""

    id: Annotated[str, doc("Id of the alarm, constant while it lasts.")]
    rule: Annotated[str, doc("Id of the rule that is broken.")]
    kind: Annotated[str, one_of(*KINDS, AUDIENCE, PLACEMENT, HOMES), doc("Kind of the rule.")]
    rp: Annotated[str | None, doc("Id of the rendezvous point; null: the domain.")]
    about: Annotated[str, doc("Object of the alarm: a subscription, a peer, a gateway, an audience; may be empty.")]
    severity: Annotated[str, one_of(*SEVERITIES)]
    detail: Annotated[str, doc("One sentence: what is wrong.")]
    values: Annotated[list[MeasuredValue], Meta(max_length=VALUES_MAX), doc("The values in the sentence.")]
    link: Annotated[str, doc("Path of the console's page that shows more.")]
    since: Annotated[Moment, doc("When the rule was first broken.")]
    raised_at: Annotated[Moment, doc("When the alarm was raised: the rule's `for_s` later.")]
    changed_at: Annotated[Moment, doc("When one of these members last changed.")]
    acknowledged: Annotated[AlarmAcknowledged | None, doc("Acknowledgement; null: none.")]
    lasting: Annotated[bool, doc("Whether its object has ended, so that it stays open until acknowledged.")]
    muted: Annotated[AlarmMuted | None, doc("The last mute; null: none. It may have ended by itself.")]


class AlarmAnswer(AlarmData):
    """An alarm, open or cleared."""

    cleared: Annotated[AlarmCleared | None, doc("End of the alarm; null: it is open.")]


AlarmPage = page_of(AlarmAnswer)


class DomainWatchesAnswer(Shape):
    """The domain's watch rules."""

    watch: list[dict[str, Any]]
    version: Annotated[Count, doc("The ETag; 0: no rules were ever set.")]
    changed_at: Moment | None


class GatewaysAsked(Shape):
    """The number of gateways that took part in an answer."""

    asked: Annotated[Count, doc("Gateways that received the question.")]
    answered: Annotated[Count, doc("Gateways that answered within a second; sessions of the others are missing.")]


class SessionAnswer(Shape):
    """A live session."""

    id: str
    gateway: str
    principal: Annotated[str | None, doc("Identity of the reader; null: no token.")]
    issuer: str | None
    kind: Annotated[str, one_of("herald.v1", "cloudevents", "sse")]
    rps: Annotated[list[str], doc("Ids of rendezvous points that the session reads, at most 10.")]
    readings: Annotated[Count, doc("Number of rendezvous points that the session reads.")]
    since: Moment
    state: Annotated[
        str,
        one_of("idle", "live", "replaying", "stalled"),
        doc("stalled: the client does not read what is sent; replaying: the session is fed from the log."),
    ]
    lag: Annotated[Count, doc("Lag of the slowest reading, events.")]
    waiting_bytes: Annotated[Count, doc("Bytes written that the network has not accepted yet.")]
    passed: Annotated[
        Count,
        doc("Events that its readings have passed, summed; the difference of two requests is the rate of reading."),
    ]
    address: Annotated[str | UnsetType | None, doc("The client's address; for administrators only.")] = UNSET


class SessionPage(PageAnswer):
    """A page of sessions."""

    items: list[SessionAnswer]
    matching: Annotated[Count, doc("Sessions that match, on all pages.")]
    gateways: GatewaysAsked


class DisconnectedAnswer(Shape):
    """The result of a disconnection."""

    disconnected: Annotated[Count, doc("Sessions that are being closed.")]
    retry: bool
    gateways: GatewaysAsked


class LeaseListed(Shape):
    """A lease of any kind."""

    kind: Annotated[str, one_of("intake", "peer", "replica", "rp", "subscription")]
    id: Annotated[str, doc("Id of the rendezvous point, subscription or intake; the peer's name.")]
    rp: str | None
    name: str | None
    owner: Annotated[str | None, doc("Creator; the home of a replica; null for a peer.")]
    granted_s: Count
    expires_at: Moment
    warned: bool


class LeasePage(PageAnswer):
    """A page of leases."""

    items: list[LeaseListed]


class LimitsAnswer(Shape):
    """The limits of a principal, and on request of a rendezvous point and of the domain."""

    principal: Annotated[str, doc("Identity or address that the limits apply to.")]
    counted_as: Annotated[str, one_of("principal", "address"), doc("`address`: the request had no token.")]
    gateways: Positive
    limits: list[LimitAnswer]
    rp: list[LimitAnswer] | None
    domain: list[LimitAnswer] | None


class LoadRow(Shape):
    """Activity of a gateway process in one interval."""

    gateway: Annotated[str, doc("Id of the gateway process, new at each start.")]
    at: Annotated[Moment, doc("End of the interval.")]
    interval_s: Annotated[Number, doc("Length of the interval, seconds.")]
    publishes: Annotated[Count, doc("Successful requests and frames that published.")]
    events_in: Annotated[Count, doc("Events that clients published.")]
    bytes_in: Annotated[Count, doc("Bytes of these events, as stored.")]
    deliveries: Annotated[Count, doc("Events written to readers, once for each reader.")]
    bytes_out: Annotated[Count, doc("Bytes of these events.")]
    readings: Annotated[Count, doc("Readings now: a session that reads three RPs counts as three.")]


class RpLoadRow(LoadRow):
    """Activity of a gateway process at one rendezvous point."""

    joined: Annotated[Count, doc("Readings that began.")]
    left: Annotated[Count, doc("Readings that ended.")]


class HotRp(Shape):
    """A rendezvous point with much activity."""

    rp: str
    events_in: Annotated[Count, doc("Events that clients published there.")]
    deliveries: Annotated[Count, doc("Events written to its readers.")]
    readings: Annotated[Count, doc("Readings of the RP now.")]
    leaving: Annotated[Count, doc("Of these, readers who were redirected to another domain and have not gone yet.")] = 0


class GatewayLoadRow(LoadRow):
    """Activity of a gateway process in all."""

    refused: Annotated[Count, doc("Operations refused.")]
    accepts: Annotated[Count, doc("Sessions opened.")]
    closes: Annotated[Count, doc("Sessions closed.")]
    sessions: Annotated[Count, doc("Sessions open now.")]
    cpu_s: Annotated[Number, doc("Processor seconds used.")]
    rss_bytes: Annotated[Count, doc("Resident memory now, bytes.")]
    lag_ms: Annotated[Number, doc("Greatest delay of the event loop, milliseconds.")]
    hot: Annotated[list[HotRp], Meta(max_length=HOT_RPS), doc("The RPs with most activity.")]


class RedisLoad(Shape):
    """Load of Redis."""

    used_bytes: Annotated[Count, doc("Memory used now, bytes.")]
    ops_s: Annotated[Count, doc("Commands per second, as Redis states.")]


class DomainCounts(Shape):
    """Counts of what the domain holds."""

    rps: Annotated[Count, doc("RPs, including replicas of others' RPs.")]
    subscriptions: Annotated[Count, doc("Durable subscriptions.")]
    reserved_bytes: Annotated[Count, doc("History that the RPs have reserved, bytes.")]
    quota_bytes: Annotated[Count, doc("History that the domain may reserve, bytes.")]


class GatewaySampleData(GatewayLoadRow):
    """A sample of a gateway process, on `domain.admin`."""

    redis: Annotated[RedisLoad | UnsetType, doc("From one gateway of the domain.")] = UNSET
    counts: Annotated[DomainCounts | UnsetType, doc("Of the domain, from one gateway; counted every few seconds.")] = (
        UNSET
    )


class RpSampleData(RpLoadRow):
    """A sample of a gateway process, on an RP's administrative RP."""

    history: Annotated[LogExtent | UnsetType, doc("The RP's log.")] = UNSET


class DrainRefusal(Shape):
    """A domain that did not take over the home of an RP; or a subscription that no other domain holds."""

    rp: Annotated[str, doc("Id of the rendezvous point, or of the subscription.")]
    domain: str
    reason: Annotated[str, doc("One sentence.")]


class DrainAnswer(Shape):
    """The latest drain of the domain, and what it still has to hand over."""

    state: Annotated[str, one_of("none", "draining", "done", "ended")]
    began_at: Annotated[Moment | None, doc("null: there was none.")]
    until: Annotated[Moment | None, doc("Its end, unless it is ended before.")]
    done_at: Annotated[Moment | None, doc("When everything was handed over; null: not yet.")]
    handed_over: Annotated[Count, doc("Homes handed over.")]
    homes: Annotated[Count, doc("Homes that are still to be handed over.")]
    staying: Annotated[Count, doc("Homes that stay: nobody else holds a replica, or none takes over.")]
    deliveries: Annotated[Count, doc("Shared subscriptions that this domain still delivers.")]
    readers: Annotated[Count, doc("Readers here of rendezvous points that other domains serve, of the busiest ones.")]
    refusals: list[DrainRefusal]
    closes: Annotated[bool, doc("Whether the domain closes: subscribers of what nobody takes over are notified.")] = (
        False
    )
    shared: Annotated[Count, doc("Subscriptions that another domain holds since the drain began.")] = 0
    subscriptions: Annotated[Count, doc("Subscriptions that another domain can hold, and does not yet.")] = 0
    endpoints: Annotated[
        Count,
        doc(
            "Endpoints that only this domain delivers to: deliveries wait while it is down; of one that closes, still to be notified."
        ),
    ] = 0
    closed: Annotated[Count, doc("Subscribers that were notified that the domain closes.")] = 0


class DrainForecast(Shape):
    """Effect of a drain on one kind of thing that this domain has."""

    what: Annotated[str, one_of("home", "reader", "delivery", "subscription", "endpoint", "intake")]
    mode: Annotated[str, doc("Mode of delivery of endpoints and subscriptions; empty for others.")]
    count: Count
    fate: Annotated[str, one_of("handed-over", "waits", "ends", "paused")]
    why: Annotated[str, doc("One sentence.")]


class DrainPreviewAnswer(Shape):
    """Preview of a drain."""

    closes: bool
    items: Annotated[list[DrainForecast], doc("What is handed over first, then what is not.")]
