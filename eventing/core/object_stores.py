"""Addresses of object stores, which take access records and reports instead of a folder."""

from __future__ import annotations

from urllib.parse import urlsplit

from eventing.core.errors import ConfigError

SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs", "file")
"""Those that pyarrow's FileSystem.from_uri knows; `s3a` is Spark's name for `s3`."""


def check_place(setting: str, value: str) -> None:
    """Check a setting that names a folder or an object store. Raises ConfigError."""
    if "://" not in value:
        return
    try:
        parts = urlsplit(value)
    except ValueError:
        raise ConfigError(f"{setting} is no URL.") from None
    if parts.scheme not in SCHEMES:
        raise ConfigError(
            f"{setting} begins with {parts.scheme}://; use a folder, or an object store by one of {', '.join(SCHEMES)}."
        )
    if "@" in parts.netloc and parts.scheme not in ("abfs", "abfss"):  # there CONTAINER@ACCOUNT
        raise ConfigError(
            f"{setting} holds credentials; set them in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if not (parts.netloc or parts.path.strip("/")):
        raise ConfigError(f"{setting} names no bucket; use one such as s3://BUCKET/records.")
