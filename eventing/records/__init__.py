"""Access records: principal, operation, RP and outcome of each operation, written by each gateway as Parquet segments
(docs/records.md).

Life of a record: `buffer` accepts it as a tuple on the event loop (`note`) and passes the gathered records to the
`writer`, a thread of its own. The thread appends them, columns encoded, to its `spool` file within seconds; once a
minute or at 50,000 records the spool becomes Parquet `segments` under `date=YYYY-MM-DD/hour=HH/` and is removed. The
spool of a killed gateway is made into segments by the next gateway that starts. `retention` removes old segments.
"""
