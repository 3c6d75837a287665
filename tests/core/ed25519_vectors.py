"""Encodings of Ed25519 public keys that nobody may take (hexadecimal, little endian)."""

from __future__ import annotations

NEUTRAL = bytes.fromhex("01" + 31 * "00")
SMALL_ORDER = [
    "01" + 31 * "00",  # order 1
    "ec" + 30 * "ff" + "7f",  # order 2
    32 * "00",  # order 4
    31 * "00" + "80",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",  # order 8
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]
NOT_CANONICAL = [
    "01" + 30 * "00" + "80",  # of order 1 and 2: zero with a sign
    "ec" + 31 * "ff",
    "ed" + 30 * "ff" + "7f",  # of order 4: y is the prime, which stands for 0
    "ed" + 31 * "ff",
    "ee" + 30 * "ff" + "7f",  # of order 1: y stands for 1
    "ee" + 31 * "ff",
    "f0" + 30 * "ff" + "7f",  # of large order: y stands for 3
    "f0" + 31 * "ff",
    "ff" + 30 * "ff" + "7f",
    32 * "ff",
]
NOT_ON_THE_CURVE = ["02" + 31 * "00", "02" + 30 * "00" + "80", "07" + 31 * "00"]
