"""Access records: who did what where with which outcome, written by each gateway as Parquet segments (docs/records.md).

Life of a record: `buffer` takes it as a tuple on the event loop (`note`) and hands what has gathered to the `writer`, a
thread of its own; that appends it, columns encoded, to its `spool` file within seconds; once a minute or at 50,000
records the spool becomes Parquet `segments` under `date=YYYY-MM-DD/hour=HH/` and is removed. What a killed gateway left
in its spool, the next gateway that starts makes into segments. `retention` removes old segments.
"""
