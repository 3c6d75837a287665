"""Backups of a domain: `herald backup` makes one file of a running domain, `herald restore` makes a domain of it.

The life of a backup (`making.py`): the database at one instant, then every log, then files: secret key, access records,
reports. The database is first, because what it has decided is in the logs by then, or is put there again from its
outbox. All is one tar file (`archive.py`), whose last member, the manifest, has counts and checksums: a file without it is
no backup. It gets its name when all of it is on disk (`output.py`).

The life of a restore (`restoring.py`): the file is checked as a whole -> the folder is locked and marked as unfinished,
which refuses the start of a domain -> what was there is moved aside -> database, data plane -> every log is continued in a
new epoch (eventing/log/lineage.py) -> files -> the mark is removed. A restore that ends before leaves the mark, and the
next one begins anew.
"""
