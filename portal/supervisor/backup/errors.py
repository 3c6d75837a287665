"""Error that ends a backup or a restore. The message is one sentence: what is wrong and what to do."""


class BackupError(Exception):
    """The backup was not made, or not restored; the command prints the message and exits with 1."""
