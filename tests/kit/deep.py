"""Objects that nest more deeply than parsers read, as an API server stores them."""

MANAGED = 1_100
"""Levels of managed fields; an API server stores up to ten thousand."""


def nested(levels: int, inner: bytes = b"{}") -> bytes:
    return b'{"f:a":' * levels + inner + b"}" * levels


def deep_fields(levels: int = MANAGED) -> bytes:
    """JSON for `metadata`, as the last field: managed fields."""
    entry = b'"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1"'
    time = b'"time":"2026-01-01T00:00:00Z"'
    return b',"managedFields":[{' + entry + b"," + time + b',"fieldsV1":{"f:data":' + nested(levels) + b"}}]"


def deep_secret(name: str, *, levels: int = MANAGED) -> bytes:
    meta = f'"name":"{name}"'.encode() + deep_fields(levels)
    return b'{"apiVersion":"v1","kind":"Secret","metadata":{' + meta + b"}}"
