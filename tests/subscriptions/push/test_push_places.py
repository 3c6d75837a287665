"""Places for requests in flight: whoever hangs takes the place of nobody else for long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eventing.subscriptions.push.process.places import (
    FAILING_EVERY_S,
    FAILING_IN_FLIGHT_MAX,
    HOST_IN_FLIGHT_MAX,
    IN_FLIGHT_MAX,
    SLOW_IN_FLIGHT_MAX,
    SLOW_S,
    RequestPlace,
    RequestPlaces,
)


def course(host: str, *, failing: bool = False) -> Any:
    return SimpleNamespace(host=(host, 443), is_failing=failing, queued=False)


def taken(places: RequestPlaces, now: float = 0.0) -> list[tuple[Any, RequestPlace]]:
    found = []
    while (one := places.next(now)) is not None:
        found.append((one.course, one.place))
    return found


def test_failing_endpoints_leave_the_places_of_others_free() -> None:
    places = RequestPlaces()
    for number in range(1000):
        places.stand_in_line(course(f"dead{number}", failing=True))
    assert len(taken(places)) == 1, "each begins a while after the one before it"
    good = course("good")
    places.stand_in_line(good)
    assert [one for one, _ in taken(places)] == [good]
    assert places.failing_wait
    begun = [one for step in range(1, 1000) for one in taken(places, step * FAILING_EVERY_S)]
    assert len(begun) == FAILING_IN_FLIGHT_MAX - 1
    assert places.in_flight() == {"healthy": 1, "failing": FAILING_IN_FLIGHT_MAX, "slow": 0}
    assert places.waiting == 1000 - FAILING_IN_FLIGHT_MAX
    assert not places.failing_wait
    other = course("other")
    places.stand_in_line(other)
    assert [one for one, _ in taken(places)] == [other]


def test_endpoints_that_hang_for_the_first_time_free_their_places_soon() -> None:
    places = RequestPlaces()
    for number in range(IN_FLIGHT_MAX):
        places.stand_in_line(course(f"hangs{number}"))
    hanging = taken(places)
    good = course("good")
    places.stand_in_line(good)
    assert taken(places, 0.5) == []
    assert places.part_slow_ones(SLOW_S / 2) == 0
    assert places.part_slow_ones(SLOW_S) == IN_FLIGHT_MAX
    assert [one for one, _ in taken(places, SLOW_S)] == [good]
    for _, place in hanging:
        places.leave(place)
    assert places._free["slow"] == SLOW_IN_FLIGHT_MAX
    assert places._free["healthy"] == IN_FLIGHT_MAX - 1


def test_a_host_has_a_bounded_number_and_delays_no_other() -> None:
    places = RequestPlaces()
    for _ in range(HOST_IN_FLIGHT_MAX + 3):
        places.stand_in_line(course("one"))
    places.stand_in_line(course("other"))
    found = taken(places)
    assert [one.host[0] for one, _ in found].count("one") == HOST_IN_FLIGHT_MAX
    assert [one.host[0] for one, _ in found].count("other") == 1
    for _, place in found:
        places.leave(place)
    assert len(taken(places)) == 3, "those that waited for their host come next"


def test_a_course_waits_in_one_line_only_and_in_the_line_of_its_present_standing() -> None:
    places, turned = RequestPlaces(), course("a")
    places.stand_in_line(turned)
    places.stand_in_line(turned)
    turned.is_failing = True
    ((found, place),) = taken(places)
    assert (found, place.kind) == (turned, "failing")
