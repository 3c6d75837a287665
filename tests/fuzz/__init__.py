"""A bounded fuzzer of a gateway from outside: `python -m tests.fuzz --inputs N --seed S` (see `tests/fuzz/__main__.py`)."""
