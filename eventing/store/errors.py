"""Redis' errors, for callers of the store and of the log. Every other one is a RedisError."""

from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

__all__ = ["AuthenticationError", "RedisConnectionError", "RedisError", "ResponseError"]
