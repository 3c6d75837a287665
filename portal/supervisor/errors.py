"""Error that prevents the start of a domain. The message is one sentence: what is wrong and what to do."""


class StartError(Exception):
    """The domain cannot start; the command prints the message and exits with 1."""
