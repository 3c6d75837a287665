"""Hypothesis for the pure core: no deadline, since a busy machine is not a failure of what is tested."""

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
