"""Why a domain cannot start. The message is one sentence for the operator: what is wrong and what to do."""


class StartError(Exception):
    """The domain cannot start; the command says the message and exits with 1."""
