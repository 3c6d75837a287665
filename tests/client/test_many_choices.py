"""Clients and domains with the simulator's round-trip times: what the choice and the ranking come to together."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from herald.best_server import BestServer

from eventing.replication.rules.balancing import STEP_S, BalancingMove, RpReaders, balancing_steps
from eventing.replication.rules.ranking import LOAD_FACTOR, ReplicaServer, ranked, rooms
from eventing.replication.rules.reader_moves import ReaderMove, is_drawn, targets_by_room
from eventing.sim.network import SimulatedNetwork

HOURS = 3
WITHIN_MS = 15.0


def name(domain: int) -> str:
    return f"d{domain}"


def url(domain: int) -> str:
    return f"https://d{domain}.example"


def of(server: str) -> int:
    return int(server.removeprefix("https://d").removesuffix(".example"))


@dataclass
class Population:
    """Domains, and clients beside them, by the simulator's network; time passes in steps of the clients' measurements."""

    seed: int
    domains: int
    clients: int
    loads_known: bool = False
    at: list[int] = field(default_factory=list)
    moves: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.network = SimulatedNetwork(self.domains + self.clients, self.chance)
        self.capacity = 10_000
        self.best = [BestServer(self.chance, url(n % 3)) for n in range(self.clients)]
        self.at = [n % 3 for n in range(self.clients)]
        self.due: list[tuple[float, int]] = []
        self.balance_at = 30.0
        self.steps: list[dict[str, BalancingMove]] = [{} for _ in range(self.domains)]
        for client in range(self.clients):
            self.arrive(client, 0.0)

    def base_ms(self, client: int, domain: int) -> float:
        return 2000 * self.network.base_s(self.domains + client, domain)

    def measured_ms(self, client: int, domain: int) -> float:
        here = self.domains + client
        return 1000 * min(self.network.delay_s(here, domain) + self.network.delay_s(domain, here) for _ in range(3))

    def servers(self, domain: int) -> list[ReplicaServer]:
        load = Counter(self.at)
        return [
            ReplicaServer(
                name(n),
                url(n),
                self.capacity,
                load[n] if self.loads_known or n == domain else None,
                2000 * self.network.base_s(domain, n) if n != domain else None,
                fresh=self.loads_known,
            )
            for n in range(self.domains)
        ]

    def arrive(self, client: int, now: float) -> None:
        domain = self.at[client]
        named = ranked(self.servers(domain), name(domain), f"{client} {domain} {now}")
        self.best[client].named("rp", [one.url for one in named], now)
        self.wait(client)

    def wait(self, client: int) -> None:
        if (at := self.best[client].measure_at) is not None:
            heapq.heappush(self.due, (at, client))

    def run(self, seconds: float) -> None:
        """Go on until this time."""
        while self.due and self.due[0][0] < seconds:
            now, client = heapq.heappop(self.due)
            if self.loads_known and now >= self.balance_at:
                self.balance(self.balance_at)
                self.balance_at += STEP_S
            best = self.best[client]
            if best.measure_at is None or best.measure_at > now:
                continue
            servers = best.measures(now)
            best.measured({one: self.measured_ms(client, of(one)) for one in servers}, now)
            if best.go is not None:
                self.at[client] = of(best.go.url)
                best.arrived(best.go.url, now)
                self.moves += 1
                self.arrive(client, now)
            else:
                if not best.alternatives(now):
                    self.arrive(client, now)
                self.wait(client)

    def balance(self, now: float) -> None:
        """Each domain moves the excess, as eventing/operations/services/reader_balancing.py does."""
        for domain in range(self.domains):
            readers = [n for n in range(self.clients) if self.at[n] == domain]
            servers = self.servers(domain)
            rps = [RpReaders("rp", len(readers), servers)]
            for step in balancing_steps(rps, name(domain), self.steps[domain], now).values():
                self.steps[domain]["rp"] = BalancingMove(now, step.until, step.readers)
                move = ReaderMove(f"{domain} {now}", "rp", step.share, (), step.until, 0.0, "", rooms=step.rooms)
                for client in readers:
                    if is_drawn(move, str(client)):
                        to = targets_by_room(move, str(client))
                        self.best[client].redirected(to, self.best[client].hops(now) + 1, 60.0, now)
                        self.wait(client)

    def share_near(self, *, with_room: bool) -> float:
        """The share of clients within WITHIN_MS of the best domain for them, or of the best with room."""
        room = rooms(self.servers(0)) if with_room else [1.0] * self.domains
        near = 0
        for client, domain in enumerate(self.at):
            open_ones = [n for n in range(self.domains) if room[n] > 0 or n == domain]
            best = min(self.base_ms(client, n) for n in open_ones)
            near += self.base_ms(client, domain) <= best + WITHIN_MS
        return near / self.clients


@pytest.mark.parametrize(("domains", "clients"), [(8, 400), pytest.param(40, 1000, marks=pytest.mark.long)])
def test_at_least_95_percent_of_the_clients_find_a_domain_within_15_ms_of_their_best(
    domains: int, clients: int
) -> None:
    population = Population(1, domains, clients)
    before = population.share_near(with_room=False)
    population.run(HOURS * 3600.0)
    assert before < 0.5
    assert population.share_near(with_room=False) >= 0.95
    assert population.moves <= 2 * clients, "they do not wander"


@pytest.mark.parametrize("clients", [800, pytest.param(4000, marks=[pytest.mark.long, pytest.mark.soak])])
def test_where_loads_are_known_no_domain_is_above_its_bound_and_the_clients_come_to_rest(clients: int) -> None:
    population = Population(1, 4, clients, loads_known=True)
    assert max(Counter(population.at).values()) > LOAD_FACTOR * clients / 4
    population.run(HOURS * 3600.0)
    assert max(Counter(population.at).values()) <= LOAD_FACTOR * clients / 4
    moves = population.moves
    population.run(2 * HOURS * 3600.0)
    assert population.moves - moves <= clients / 10, "no moving back and forth"
