"""Traffic: bytes and messages per domain and second, those of the directory apart from all others."""

from __future__ import annotations

from array import array
from typing import Annotated, Any, ClassVar

import msgspec

from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values, percentile
from eventing.sim.measurements.sizes import DIRECTORY, size_of

ENVELOPE_BYTES = 62
"""Of a message that is alone in its packet on a standing connection: 40 bytes of TCP/IP and 22 of TLS."""


class TrafficMeasured(Measurement, frozen=True, kw_only=True):
    """Bytes and messages.

    Values, each per running domain and second since the sample before: `out_bytes_s`, `directory_bytes_s`, `other_bytes_s` (all sent
    but the directory's), `messages_s`; `out_p99_bytes_s`, `in_p99_bytes_s`: of the domain that sends or receives more than 99 %
    of all; `out_max_bytes_s`, `in_max_bytes_s`: of the one with most. In the summary the same over the whole run after settling, and bytes per second by kind of message.

    Attributes:
        envelope_bytes: added to each message's own size.
    """

    kind: ClassVar[str] = "traffic"
    envelope_bytes: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = ENVELOPE_BYTES

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _TrafficProbe(run, self.envelope_bytes)


class _TrafficProbe:
    def __init__(self, run: SimulationContext, envelope_bytes: int) -> None:
        self._run = run
        self._envelope = envelope_bytes
        count = run.scenario.domains
        self._out = array("Q", bytes(8 * count))
        self._in = array("Q", bytes(8 * count))
        self._kinds: dict[type, list[int]] = {}
        self._domain_s = 0.0
        self._at_s: float | None = None
        self._before: tuple[list[int], list[int], dict[type, tuple[int, int]]] | None = None
        self._first: tuple[list[int], list[int], dict[type, tuple[int, int]]] | None = None
        run.on_message(self._sent)

    def _sent(self, source: int, target: int, message: Any) -> None:
        size = size_of(message) + self._envelope
        self._out[source] += size
        self._in[target] += size
        kind = self._kinds.get(type(message))
        if kind is None:
            kind = self._kinds[type(message)] = [0, 0]
        kind[0] += 1
        kind[1] += size

    def _copy(self) -> tuple[list[int], list[int], dict[type, tuple[int, int]]]:
        kinds = {kind: (messages, size) for kind, (messages, size) in self._kinds.items()}
        return self._out.tolist(), self._in.tolist(), kinds

    def sample(self) -> Values:
        now = self._run.time
        if self._at_s is None or self._before is None:
            self._at_s, self._before = now, self._copy()
            self._first = self._before
            return {}
        elapsed_s = now - self._at_s
        running = self._run.running
        if not elapsed_s or not running:
            return {}
        self._domain_s += elapsed_s * len(running)
        values = self._rates(self._before, elapsed_s * len(running))
        outs = sorted((self._out[at] - self._before[0][at]) / elapsed_s for at in running)
        ins = sorted((self._in[at] - self._before[1][at]) / elapsed_s for at in running)
        values["out_p99_bytes_s"], values["in_p99_bytes_s"] = percentile(outs, 0.99), percentile(ins, 0.99)
        values["out_max_bytes_s"], values["in_max_bytes_s"] = outs[-1], ins[-1]
        self._at_s, self._before = now, self._copy()
        return values

    def _rates(self, since: tuple[list[int], list[int], dict[type, tuple[int, int]]], domain_s: float) -> Values:
        messages = of_directory = others = 0
        for kind, (count, size) in self._kinds.items():
            count_before, size_before = since[2].get(kind, (0, 0))
            messages += count - count_before
            if kind in DIRECTORY:
                of_directory += size - size_before
            else:
                others += size - size_before
        return {
            "out_bytes_s": (of_directory + others) / domain_s,
            "directory_bytes_s": of_directory / domain_s,
            "other_bytes_s": others / domain_s,
            "messages_s": messages / domain_s,
        }

    def summary(self) -> Values:
        self.sample()
        if self._first is None or not self._domain_s:
            return {}
        values = self._rates(self._first, self._domain_s)
        duration_s = self._at_s or 1.0
        running = self._run.running
        outs = sorted((self._out[at] - self._first[0][at]) / duration_s for at in running)
        values["out_p99_bytes_s"] = percentile(outs, 0.99)
        for kind, (_, size) in sorted(self._kinds.items(), key=lambda item: item[0].__name__):
            before = self._first[2].get(kind, (0, 0))[1]
            values[f"{kind.__name__}_bytes_s"] = (size - before) / self._domain_s
        return values
