"""`make run`: one command that starts a whole domain, watches it and stops it without losing anything.

Life cycle of a domain, run by `domain.Supervisor`: lock the data folder, end what a killed run left behind, take the
port, start Redis, migrate, make keys and the first administrator, start gateways, worker and beat, report readiness,
restart children that fail, and at the end stop all in the order beat, worker, gateways, Redis. Every child runs in a
process group of its own and dies with the supervisor, even when the supervisor is killed with SIGKILL (parent_watchdog.py).
"""
