"""The process that makes one report: `python -m portal.reporting RUN ATTEMPT`, started by workers/reporting.py.

Its life: it says who it is (portal/supervisor/reporter.py) -> starts Spark as a process of its own with bounds in memory and
time (`process`) -> passes its progress on to the run, and so to whoever watches domain.admin (`runner`) -> says how it ended.
It gives the run back when it is told to stop, or when the supervisor is gone; it ends Spark when the run is not its own any
more. Killed, it takes Spark with it, and the run's lease ends.
"""
