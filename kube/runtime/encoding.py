"""The JSON that is sent to API servers."""

from typing import Any

import orjson

from kube.errors import NotWritable
from kube.objects import Object, key
from kube.runtime.decoding import LEFT_OUT

_LEFT_OUT = LEFT_OUT.encode()


def dumps(body: Any) -> bytes:
    """Raises NotWritable: it can't be written as JSON, or something was left out of it when it was read."""
    try:
        data = orjson.dumps(body)
    except TypeError as error:
        raise NotWritable(f"{_name(body)} can't be written: {error}; fields that nest deeply have to go") from error
    if _LEFT_OUT in data:
        raise NotWritable(
            f"{_name(body)} can't be written, since it can't be read as a whole: "
            "fields that nest deeply, and what is no number, have to go"
        )
    return data


def _name(body: Any) -> str:
    obj: Object = body if isinstance(body, dict) else {}
    return f"{obj.get('kind') or 'a patch'} {key(obj)}".rstrip(" ")
