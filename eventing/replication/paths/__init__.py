"""Paths of events: the domains that one event passed on its way, as far as this domain knows and others answer."""
