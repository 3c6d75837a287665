"""Replication: replicas (`joining`), runs of events between domains (`forwarding`), seals. `models`, `selectors`,
`services`, `api`, events.
"""
