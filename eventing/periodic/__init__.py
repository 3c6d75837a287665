"""Periodic tasks of a domain: which host runs which, and when, by leases in SQL (docs/decisions/0123).

The life of a run: a scheduler, one in each host, finds that a task is due and that nobody holds it -> one of them takes it by a
conditional UPDATE, which raises its fencing number -> a worker runs it while the number is the newest, and renews the lease where
the run takes longer -> it ends, and the task is due again a period after it was. What a killed, stopped or cut holder leaves is due when
its lease has ended. All times are those of the database's clock, so clocks of hosts do not matter.
"""
