"""`lxml.etree`, loaded when the first XML is read or written: most domains never speak WS-Eventing, and it is 5 MiB of a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml import etree

    Element = etree._Element
else:
    Element = Any  # only annotations name it

    class _Etree:
        """Each attribute is that of the module."""

        def __getattr__(self, name: str) -> Any:
            from lxml import etree

            return getattr(etree, name)

    etree = _Etree()

__all__ = ["Element", "etree"]
