"""`make run`: one command that starts a whole domain, watches it and stops it without losing anything.

Life cycle of a domain, run by `domain.Supervisor`: lock the data folder, end what a killed run left behind, take the
port, start Redis, migrate, make keys and the first administrator, start gateways, worker and forwarder, report readiness,
restart children that fail, exchange them for new ones when asked to, and at the end stop workers and gateways, then Redis. Every child runs in a
process group of its own and dies with the supervisor, even when the supervisor is killed with SIGKILL (parent_watchdog.py).
"""
