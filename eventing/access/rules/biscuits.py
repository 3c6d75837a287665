"""Parser of Biscuits: facts and checks of each block as plain values. Pure.

Biscuit's own library verifies only the chain of signatures (eventing/access/verification/biscuits.py). The content of
the blocks is parsed here, in the one admitted part of the format (Biscuit specification, version 3 of its schema), so
that

- no Datalog of a stranger is ever run, not even printed: a block costs one pass over its bytes;
- two parsers of the same bytes cannot disagree: everything unknown, repeated or of another type is refused.

Terms become Python values: text, integers, truth values, `Date` and `Variable`; sets, arrays, maps, bytes, null, rules,
scopes, closures, foreign functions and blocks of third parties are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from eventing.core.ed25519 import public_key_check
from eventing.core.errors import Unauthenticated

# Each block costs the verification of a signature, 0.05 ms.
BLOCKS_MAX = 16  # bound: blocks of a Biscuit; `unauthenticated`
# A JWT has at most 64 claims.
STATEMENTS_MAX = 96  # bound: facts and checks of a block; `unauthenticated`
# Also of terms and of steps of an expression.
PARTS_MAX = 64  # bound: alternatives or conditions of a check; `unauthenticated`
_VARINT_BYTES_MAX = 10
_UINT64 = 1 << 64
_SYMBOLS_BEGIN = 1024  # numbers below belong to the format's own table
_SYMBOLS = (
    "read", "write", "resource", "operation", "right", "time", "role", "owner", "tenant", "namespace", "user", "team",
    "service", "admin", "email", "group", "member", "ip_address", "client", "client_ip", "domain", "path", "version",
    "cluster", "node", "hostname", "nonce", "query",
)  # fmt: skip
_ALGORITHM_ED25519 = 0  # of a key (Biscuit specification, message PublicKey)
_COMPARISONS = {0: "<", 1: ">", 2: "<=", 3: ">=", 4: "==", 6: "starts_with"}
_CHECK_ONE = 0  # `check if`; the others are `check all` and `reject if`

Value = int | bytes


@dataclass(frozen=True, slots=True)
class Date:
    """A time in whole Unix seconds."""

    at: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a check, by its name."""

    name: str


Term = str | int | bool | Date | Variable


@dataclass(frozen=True, slots=True)
class BiscuitPredicate:
    """A name and its terms, such as `rp("...")`: a fact, or a condition of a check."""

    name: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, the only expression that is read."""

    left: Term
    operator: str
    right: Term


@dataclass(frozen=True, slots=True)
class Query:
    """One alternative of a check: all its conditions and comparisons must hold."""

    conditions: tuple[BiscuitPredicate, ...]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Content of one block; a check is a list of alternatives."""

    facts: tuple[BiscuitPredicate, ...]
    checks: tuple[tuple[Query, ...], ...]


def split(data: bytes) -> list[bytes]:
    """Split a Biscuit into its blocks, the authority block first; verifies nothing. Raises Unauthenticated."""
    authority: list[bytes] = []
    appended: list[bytes] = []
    for number, value in _fields(data):
        if number == 2:
            authority.append(_bytes(value))
        elif number == 3:
            appended.append(_bytes(value))
        elif number not in (1, 4):  # the number of a root key, and the proof: checked by the library
            raise Unauthenticated("The Biscuit has an unknown part.")
        if len(appended) >= BLOCKS_MAX:
            raise Unauthenticated(f"The Biscuit has more than {BLOCKS_MAX} blocks; delegate from an earlier one.")
    if len(authority) != 1:
        raise Unauthenticated("The Biscuit does not have exactly one authority block.")
    return [_content(signed) for signed in (*authority, *appended)]


def check_keys(data: bytes) -> None:
    """Refuse the blocks of `split` if the key for the next block of the chain is not a valid public key.

    The delegating holder makes that key; with a key of small order anybody could undo the narrowing after it. The
    caller has verified the chain. Raises BadPublicKey.
    """
    signed = [_bytes(value) for number, value in _fields(data) if number in (2, 3)]
    for key in (_bytes(value) for block in signed for number, value in _fields(block) if number == 2):
        members = dict(_fields(key))
        if members.get(1, _ALGORITHM_ED25519) == _ALGORITHM_ED25519:
            public_key_check(_bytes(members.get(2, b"")))


def read(contents: list[bytes]) -> list[Block]:
    """Parse the blocks of `split`. Raises Unauthenticated, naming a part that is not admitted."""
    symbols: list[str] = []
    return [_block(content, symbols) for content in contents]


def _content(signed: bytes) -> bytes:
    found: list[bytes] = []
    for number, value in _fields(signed):
        if number == 1:
            found.append(_bytes(value))
        elif number == 4:
            raise Unauthenticated("The Biscuit has a block of a third party; such blocks are not accepted here.")
        elif number not in (2, 3, 5):  # next key, signature, version: handled by the library
            raise Unauthenticated("The Biscuit has an unknown part.")
    if len(found) != 1:
        raise Unauthenticated("The Biscuit has an unknown block.")
    return found[0]


def _block(content: bytes, symbols: list[str]) -> Block:
    facts: list[bytes] = []
    checks: list[bytes] = []
    for number, value in _fields(content):
        if number == 1:
            symbols.append(_text(value))
        elif number == 4:
            facts.append(_bytes(value))
        elif number == 5:
            raise Unauthenticated("The Biscuit has a rule in a block; only checks are admitted.")
        elif number == 6:
            checks.append(_bytes(value))
        elif number not in (2, 3):  # a comment, and the version of the schema
            raise Unauthenticated("The Biscuit has a block with scopes or keys; only checks are admitted.")
    if len(facts) + len(checks) > STATEMENTS_MAX:
        raise Unauthenticated(f"The Biscuit has a block of more than {STATEMENTS_MAX} statements.")
    return Block(
        tuple(_predicate(_bytes(_one(fact, 1)), symbols) for fact in facts),
        tuple(_check(check, symbols) for check in checks),
    )


def _check(data: bytes, symbols: list[str]) -> tuple[Query, ...]:
    queries: list[bytes] = []
    for number, value in _fields(data):
        if number == 1:
            queries.append(_bytes(value))
        elif number != 2 or value != _CHECK_ONE:
            raise Unauthenticated("The Biscuit has a check other than `check if`.")
    if not 1 <= len(queries) <= PARTS_MAX:
        raise Unauthenticated(f"The Biscuit has a check that does not have 1 to {PARTS_MAX} alternatives.")
    return tuple(_query(query, symbols) for query in queries)


def _query(data: bytes, symbols: list[str]) -> Query:
    conditions: list[BiscuitPredicate] = []
    comparisons: list[Comparison] = []
    for number, value in _fields(data):
        if number == 2:
            conditions.append(_predicate(_bytes(value), symbols))
        elif number == 3:
            comparisons.append(_comparison(_bytes(value), symbols))
        elif number != 1:  # its head is of no interest
            raise Unauthenticated("The Biscuit has a check that trusts other blocks; this is not admitted.")
        if len(conditions) + len(comparisons) > PARTS_MAX:
            raise Unauthenticated(f"The Biscuit has a check of more than {PARTS_MAX} conditions.")
    return Query(tuple(conditions), tuple(comparisons))


def _predicate(data: bytes, symbols: list[str]) -> BiscuitPredicate:
    names: list[str] = []
    terms: list[Term] = []
    for number, value in _fields(data):
        if number == 1:
            names.append(_symbol(value, symbols))
        elif number == 2 and len(terms) < PARTS_MAX:
            terms.append(_term(_bytes(value), symbols))
        else:
            raise Unauthenticated("The Biscuit has an unknown fact.")
    if len(names) != 1:
        raise Unauthenticated("The Biscuit has an unknown fact.")
    return BiscuitPredicate(names[0], tuple(terms))


def _comparison(data: bytes, symbols: list[str]) -> Comparison:
    """Parse an expression, a program for a stack, of which only two values and one comparison are admitted."""
    steps: list[bytes] = []
    for number, value in _fields(data):
        if number != 1 or len(steps) == 3:
            raise Unauthenticated("The Biscuit has an expression that is not one comparison of two values.")
        steps.append(_bytes(value))
    if len(steps) != 3:
        raise Unauthenticated("The Biscuit has an expression that is not one comparison of two values.")
    left, right = (_term(_bytes(_one(step, 1)), symbols) for step in steps[:2])
    kind = _one(_bytes(_one(steps[2], 3)), 1)
    operator = _COMPARISONS.get(kind) if isinstance(kind, int) else None
    if operator is None:
        raise Unauthenticated("The Biscuit has an expression with another operator than <, <= and starts_with.")
    return Comparison(left, operator, right)


def _term(data: bytes, symbols: list[str]) -> Term:
    (number, value), *more = _fields(data) or [(0, 0)]
    if isinstance(value, int) and not more:
        if number == 1:
            return Variable(_symbol(value, symbols))
        if number == 2:
            return value if value < _UINT64 // 2 else value - _UINT64
        if number == 3:
            return _symbol(value, symbols)
        if number == 4:
            return Date(value)
        if number == 6 and value in (0, 1):
            return bool(value)
    raise Unauthenticated("The Biscuit has a value that is neither text, integer, truth value nor date.")


def _symbol(value: Value, symbols: list[str]) -> str:
    if isinstance(value, int):
        if value < len(_SYMBOLS):
            return _SYMBOLS[value]
        if 0 <= value - _SYMBOLS_BEGIN < len(symbols):
            return symbols[value - _SYMBOLS_BEGIN]
    raise Unauthenticated("The Biscuit refers to a text that it does not contain.")


def _text(value: Value) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise Unauthenticated("The Biscuit has a text that is not UTF-8.") from None


def _bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    raise Unauthenticated("The Biscuit is malformed.")


def _one(data: bytes, number: int) -> Value:
    """Return the value of a message with one field of this number."""
    fields = _fields(data)
    if len(fields) == 1 and fields[0][0] == number:
        return fields[0][1]
    raise Unauthenticated("The Biscuit has an unknown statement.")


def _fields(data: bytes) -> list[tuple[int, Value]]:
    """Parse the fields of a Protocol Buffers message: their numbers, with numbers (varints) or bytes as values."""
    fields: list[tuple[int, Value]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 0:
            fields.append((tag >> 3, value))
        elif tag & 7 == 2 and value <= len(data) - at:
            fields.append((tag >> 3, data[at : at + value]))
            at += value
        else:
            raise Unauthenticated("The Biscuit is malformed.")
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_BYTES_MAX):
        if at + index >= len(data):
            break
        byte = data[at + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            if value >= _UINT64:
                break
            return value, at + index + 1
    raise Unauthenticated("The Biscuit is malformed.")
