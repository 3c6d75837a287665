"""The process that makes one report: `python -m portal.supervisor.reporting RUN ATTEMPT`, started by workers/reporting.py.

Life cycle: it registers itself (portal/supervisor/reporting/reporter.py) -> starts Spark as a separate process with bounds in
memory and time (`process`) -> stores its progress in the run, which publishes it on domain.admin (`runner`) -> stores
the result. It releases the run when it is asked to stop, or when the supervisor has ended; it ends Spark when the run's
lease is lost. If it is killed, Spark ends with it, and the run's lease expires.
"""
