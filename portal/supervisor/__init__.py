"""`make run`: one command that starts a whole domain, watches it and stops it without losing anything.

The life of a domain, as `domain.Supervisor` lives it: lock the data folder, end what a killed run left behind, take the
port, start Redis, migrate, make keys and the first administrator, start gateways, worker and beat, say so, restart
whatever falls over, and at the end stop all in the order beat, worker, gateways, Redis. Every child runs in a process
group of its own and dies with the supervisor, even when the supervisor is killed with SIGKILL (`leash`).
"""
