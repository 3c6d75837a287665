"""Redis' errors, for callers of the store and of the log. Every other one is a RedisError."""

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

__all__ = ["RedisConnectionError", "RedisError", "ResponseError"]
