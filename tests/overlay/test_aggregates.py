"""Aggregates: figures from signed rows, with their coverage, whatever reporters and domains claim."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from eventing.overlay.aggregates import REPORT_DUE, Aggregates, LoadMeasured, ReportDue
from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.load_rows import (
    AMOUNT_MAX,
    CAPACITY,
    DomainLoad,
    LoadSample,
    LoadTotals,
    ZoneLoad,
    ZoneTotals,
    clamped,
    load_of,
    payload_of,
    totals_of,
)
from eventing.overlay.machine import Chance, Fired, Id
from eventing.overlay.monitors import epoch_of
from eventing.overlay.zone_index import OTHER, REPORTERS, SAMPLE, ZONE_MIN, ZONES_MAX, ZoneIndex
from eventing.sim.federation import STARTED_S
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World
from tests.overlay.gossiping import HASHES, LINKS, GossipNode

CHANCE = Random(1)
EPOCH = epoch_of(STARTED_S)
NOW = int(STARTED_S)


class Place(msgspec.Struct, frozen=True):
    """The part of a record that zones are made of."""

    domain: Id
    zone: str
    capacity: int = 1


def index_of(zones: dict[str, int], *, epoch: int = EPOCH, capacity: int = 1) -> ZoneIndex:
    places: list[Place] = []
    for zone, count in zones.items():
        places += [Place(len(places) + at, zone, capacity) for at in range(count)]
    return ZoneIndex(places, epoch, HASHES.__getitem__)


class Reader:
    """Aggregates of domain 0 over an index and rows that a test gives."""

    def __init__(self, index: ZoneIndex) -> None:
        self.index = index
        self.node = GossipNode(0, [0] * 10_000, [ZoneLoad(), LoadSample(), LoadTotals()], STARTED_S)
        self.suspected: dict[Id, float] = {}
        self.figures = Aggregates(
            0, self.node.gossip.sets, index=lambda now: index, suspected=self.suspected, started_s=STARTED_S
        )

    def row(self, of: str, owner: Id, payload: Any, *, age_s: int = 0) -> None:
        row = SignedRow(owner, NOW - age_s, NOW + 3600, payload_of(payload), b"s" * 64)
        self.node.gossip.sets[of].merge(row, 0.0, STARTED_S)

    def zone(self, zone: str) -> Any:
        return self.figures.zones(0.0)[zone]


@pytest.fixture
def reader() -> Reader:
    """Zones of 20 and 300 domains; the reader is in the first, "here"."""
    made = Reader(index_of({"here": 20, "there": 300}))
    for domain in made.index.zones["here"]:
        made.row("load", domain, DomainLoad(10, 1, 100, domain), age_s=domain)
    for domain in made.index.zones["there"]:
        if made.index.in_sample(domain):
            made.row("load-sample", domain, DomainLoad(50, 2, 0, 500))
    return made


def report(reader: Reader, *sessions: int, zone: str = "there", domains: int = 300) -> None:
    """Have the reporters of a zone state sums of sessions."""
    for reporter, sum_ in zip(reader.index.reporters(zone), sessions, strict=False):
        totals = ZoneTotals(zone, domains, 30, DomainLoad(sum_, 600, 0, 0), DomainLoad(90, 9, 0, 900))
        reader.row("load-totals", reporter, totals, age_s=10)


def test_the_own_zone_is_summed_up_from_its_rows(reader: Reader) -> None:
    here = reader.zone("here")
    assert (here.known, here.live, here.reporting.value) == (20, 20, 20)
    assert here.sums["sessions"] == (200, 1.0, 19, False)
    assert here.maxima["busy_permille"].value == 19


def test_coverage_is_the_share_of_live_domains(reader: Reader) -> None:
    reader.node.gossip.sets["load"].rows.pop(3)
    reader.node.gossip.sets["load"].rows.pop(4)
    assert reader.zone("here").sums["sessions"][:2] == (180, 0.9)
    reader.suspected.update({3: 0.0, 4: 0.0})
    assert reader.zone("here").sums["sessions"][:2] == (180, 1.0)


def test_a_foreign_zone_is_what_the_middle_one_of_its_reporters_states(reader: Reader) -> None:
    report(reader, 0, 15_000, AMOUNT_MAX)
    assert reader.zone("there").sums["sessions"] == (15_000, 1.0, 40, False)


def test_a_foreign_zone_without_reporters_is_estimated_from_its_sample(reader: Reader) -> None:
    there = reader.zone("there")
    assert there.sums["sessions"].value == 15_000
    assert there.sums["sessions"].coverage == pytest.approx(SAMPLE / 300)


@pytest.mark.parametrize("lie", [0, 2_000_000], ids=["to attract", "to repel"])
def test_reporters_that_all_lie_are_found_out_by_the_sample(reader: Reader, lie: int) -> None:
    report(reader, lie, lie, lie)
    sessions = reader.zone("there").sums["sessions"]
    assert (sessions.value, sessions.disputed) == (15_000, True)
    assert reader.zone("there").sums["events_out_per_s"].disputed is False
    assert reader.figures.total("sessions", 0.0).disputed


def test_no_sum_exceeds_what_its_domains_can_do() -> None:
    made = Reader(index_of({"here": 20, "there": 20}, capacity=0))
    for domain in made.index.zones["here"]:
        made.row("load", domain, DomainLoad(AMOUNT_MAX, AMOUNT_MAX, AMOUNT_MAX, AMOUNT_MAX))
    report(made, AMOUNT_MAX, AMOUNT_MAX, AMOUNT_MAX)
    for zone in made.figures.zones(0.0).values():
        assert zone.sums["sessions"].value == 20 * CAPACITY[0].sessions
        assert zone.maxima["busy_permille"].value <= 1000


def test_rows_of_domains_that_are_no_reporters_count_for_nothing(reader: Reader) -> None:
    totals = ZoneTotals("there", 300, 0, DomainLoad(1), DomainLoad(1))
    reader.row("load-totals", reader.index.zones["there"][50], totals)
    reader.row("load-totals", reader.index.reporters("here")[0], totals)
    assert reader.zone("there").sums["sessions"].value == 15_000


@pytest.mark.parametrize(
    "payload",
    [
        [float("nan"), 0, 0, 0],
        [float("inf"), 0, 0, 0],
        [-1, 0, 0, 0],
        [1.5, 0, 0, 0],
        [AMOUNT_MAX + 1, 0, 0, 0],
        ["7", 0, 0, 0],
        {"sessions": 7},
    ],
    ids=["nan", "infinite", "negative", "fraction", "too large", "text", "map"],
)
def test_a_number_that_is_none_is_refused(payload: Any) -> None:
    encoded = msgspec.msgpack.encode(payload)
    assert load_of(encoded) is None
    assert not ZoneLoad().valid(1, encoded)
    assert totals_of(msgspec.msgpack.encode(["z", 1, 1, payload, [0, 0, 0, 0]])) is None


def test_claims_are_clamped_to_the_capacity_class() -> None:
    assert clamped(DomainLoad(10**12, 5, 10**12, 5000), 0) == DomainLoad(1_000, 5, 10_000_000, 1_000)


def test_totals_over_zones_have_the_coverage_of_all(reader: Reader) -> None:
    report(reader, 15_000, 15_000, 15_000, domains=150)
    total = reader.figures.total("sessions", 0.0)
    assert total.value == 15_200
    assert total.coverage == pytest.approx((20 * 1.0 + 300 * 0.5) / 320)
    assert total.oldest_s == 40
    assert reader.figures.domains(0.0).value == 170
    assert reader.figures.maximum("busy_permille", 0.0).value == 900


def test_small_zones_are_folded_into_one_and_there_are_not_too_many() -> None:
    index = index_of({f"zone-{number:03}": ZONE_MIN for number in range(ZONES_MAX + 20)} | {"tiny": ZONE_MIN - 1})
    assert len(index.zones) == ZONES_MAX
    assert OTHER in index.zones
    assert sum(map(len, index.zones.values())) == (ZONES_MAX + 20) * ZONE_MIN + ZONE_MIN - 1
    assert index.zone_of(0) == "zone-000"
    assert index.zone_of(10**6) is None


def test_reporters_change_with_the_epoch() -> None:
    zones = {"there": 2000}
    first, second = index_of(zones).reporters("there"), index_of(zones, epoch=EPOCH + 1).reporters("there")
    assert len(first) == len(second) == REPORTERS
    assert first != second


def test_a_domain_contributes_to_the_objects_that_it_belongs_to_only() -> None:
    index = index_of({"here": 400, "there": 20})
    node = GossipNode(0, [0] * 420, [ZoneLoad(), LoadSample(), LoadTotals()], STARTED_S)
    current = [index]
    for domain, expected in ((index.zones["here"][0], True), (index.zones["here"][-1], False)):
        made = Aggregates(domain, node.gossip.sets, index=lambda now: current[0], started_s=STARTED_S)
        out = made.handle(LoadMeasured(DomainLoad(7)), 0.0, CHANCE) + made.handle(Fired(REPORT_DUE), 0.0, CHANCE)
        objects = {one.object for one in out if isinstance(one, Contribute)}
        assert objects == ({"load", "load-sample", "load-totals"} if expected else {"load"})
    made = Aggregates(index.zones["here"][0], node.gossip.sets, index=lambda now: current[0], started_s=STARTED_S)
    made.handle(Fired(REPORT_DUE), 0.0, CHANCE)
    current[0] = index_of({"here": 400, "there": 20}, epoch=EPOCH + 1)
    assert Withdraw("load-totals") in made.handle(Fired(REPORT_DUE), 0.0, CHANCE)


def test_the_domains_of_a_single_zone_state_nothing_for_other_zones() -> None:
    index = index_of({"here": 40})
    node = GossipNode(0, [0] * 40, [ZoneLoad(), LoadSample(), LoadTotals()], STARTED_S)
    made = Aggregates(index.zones["here"][0], node.gossip.sets, index=lambda now: index, started_s=STARTED_S)
    out = made.handle(LoadMeasured(DomainLoad(7)), 0.0, CHANCE) + made.handle(Fired(REPORT_DUE), 0.0, CHANCE)
    assert [one.object for one in out if isinstance(one, Contribute)] == ["load"]


def test_figures_of_the_whole_are_those_of_its_zones_together(reader: Reader) -> None:
    report(reader, 15_000, 15_000, 15_000)
    whole = reader.figures.whole(reader.figures.zones(0.0))
    assert (whole.known, whole.live, whole.reporting.value) == (320, 320, 320)
    assert whole.sums["sessions"] == reader.figures.total("sessions", 0.0)
    assert whole.maxima["busy_permille"] == reader.figures.maximum("busy_permille", 0.0)
    assert whole.sums["sessions"].value == 15_200


# In a federation


class AggregatingNode(GossipNode):
    """A domain that gossips load."""

    def __init__(self, me: int, zones: bytes, index: ZoneIndex, lies: bool) -> None:
        objects = [ZoneLoad(), LoadSample(lambda now: index), LoadTotals(lambda now: index)]
        super().__init__(me, zones, objects, STARTED_S)
        self.index = index
        self.lies = lies
        self.figures = Aggregates(me, self.gossip.sets, index=lambda now: index, started_s=STARTED_S)

    def in_zone(self, peer: Id) -> bool:
        return self.index.zone_of(peer) == self.index.zone_of(self.me)

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        if given == "begin":
            return self.figures.begin(chance) + super().handle(given, now, chance)
        if not isinstance(given, LoadMeasured) and not (
            isinstance(given, Fired) and isinstance(given.timer, ReportDue)
        ):
            return super().handle(given, now, chance)
        out: list[Any] = []
        for one in self.figures.handle(given, now, chance):
            if isinstance(one, Contribute) and self.lies:
                lie = DomainLoad(AMOUNT_MAX, 0, AMOUNT_MAX, 0)
                zone = self.index.zone_of(self.me) or ""
                one = Contribute(
                    one.object, payload_of(ZoneTotals(zone, 0, 0, lie, lie) if one.object == "load-totals" else lie)
                )
            out += super().handle(one, now, chance) if isinstance(one, Contribute | Withdraw) else [one]
        return out


def federation(
    count: int, seed: int, *, liars: float = 0.0, until_s: float
) -> tuple[list[AggregatingNode], dict[Id, int]]:
    """Run domains that contribute their load; return them with their true sessions."""
    chance = Random(seed)
    network = SimulatedNetwork(count, chance)
    index = ZoneIndex([Place(me, f"zone-{network.zone[me]}", 0) for me in range(count)], EPOCH, HASHES.__getitem__)
    nodes = [AggregatingNode(me, network.zone, index, chance.random() < liars) for me in range(count)]
    world = World(nodes, network, chance)
    sessions = {me: 1 + chance.randrange(200) for me in range(count)}
    for node in nodes:
        for peer in chance.sample(range(count), LINKS):
            if peer != node.me and peer not in node.peers:
                node.peers.append(peer)
                nodes[peer].peers.append(node.me)
        world.give(node.me, "begin")
        world.later(node.me, LoadMeasured(DomainLoad(sessions[node.me], 1, 1, 1)), 30 * chance.random())
    world.run(until_s)
    return nodes, sessions


def test_every_domain_knows_the_load_of_all_zones() -> None:
    nodes, sessions = federation(60, 1, until_s=400.0)
    for node in nodes:
        total = node.figures.total("sessions", 400.0)
        assert total.coverage >= 0.95
        assert abs(total.value - sum(sessions.values())) <= 0.1 * sum(sessions.values())
        own = node.figures.zones(400.0)[node.index.zone_of(node.me) or ""]
        assert own.sums["sessions"].value == sum(
            sessions[one] for one in node.index.zones[node.index.zone_of(node.me) or ""]
        )


def test_liars_move_totals_by_no_more_than_their_capacity() -> None:
    nodes, sessions = federation(80, 2, liars=0.2, until_s=400.0)
    liars = sum(node.lies for node in nodes)
    assert liars >= 8
    clamp = liars * CAPACITY[0].sessions
    for node in nodes:
        if not node.lies:
            total = node.figures.total("sessions", 400.0).value
            honest = sum(of for me, of in sessions.items() if not nodes[me].lies)
            assert 0.6 * honest <= total <= 1.5 * (sum(sessions.values()) + clamp)
