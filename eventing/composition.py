"""The composition root: it connects what lower subjects ask of higher ones (core/ports.py). One function a higher subject.

Imported and run once by each process, when Django has loaded its models; nothing else connects a port or a hook.
"""

from __future__ import annotations


def connect() -> None:
    """Connect every port and hook of the domain. Harmless when repeated."""
