"""A bounded fuzzer of a gateway from outside: `python -m tests.gateway.fuzz --inputs N --seed S` (see `tests/gateway/fuzz/__main__.py`)."""
