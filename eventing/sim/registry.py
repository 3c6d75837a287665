"""Registries: the kinds of faults, roles and measurements that scenario files name.

Each class states its `kind`; catalogue.py lists the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from eventing.core.decoding import Undecodable, converted
from eventing.sim.errors import ScenarioError


class Named(Protocol):
    """A class that scenario files name."""

    kind: ClassVar[str]


Kind = TypeVar("Kind", bound=Named)


class Registry(Generic[Kind]):
    """Classes by the name that scenario files use.

    Args:
        noun: of one entry, for error messages.
        kinds: the classes. Raises ValueError for two of one name.
    """

    def __init__(self, noun: str, *kinds: type[Kind]) -> None:
        self.noun = noun
        self._kinds = {kind.kind: kind for kind in kinds}
        if len(self._kinds) < len(kinds):
            raise ValueError(f"two kinds of {noun} have one name")

    def __iter__(self) -> Iterator[tuple[str, type[Kind]]]:
        return iter(sorted(self._kinds.items()))

    def decode(self, item: dict[str, Any], where: str) -> Kind:
        """Make one entry of a scenario file: its `kind` selects the class, the other fields are those of the class.

        Raises ScenarioError with the place and the reason.
        """
        name = item.get("kind")
        if not isinstance(name, str):
            raise ScenarioError(f"{where}: 'kind' is missing; one of {self._names()}")
        kind = self._kinds.get(name)
        if kind is None:
            near = get_close_matches(name, self._kinds, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"one of {self._names()}"
            raise ScenarioError(f"{where}: there is no {self.noun} {name!r}; {hint}")
        fields = {key: value for key, value in item.items() if key != "kind"}
        try:
            return converted(fields, kind)
        except Undecodable as error:
            raise ScenarioError(f"{where} ({name}): {error}") from None

    def _names(self) -> str:
        return ", ".join(sorted(self._kinds))
