"""Credentials for registries, in the file of Docker, as in a Secret of the type kubernetes.io/dockerconfigjson.

    {"auths": {"registry.example.com": {"auth": base64 of NAME:PASSWORD}}}

A name may go on with the first parts of a repository; the longest that fits counts. Programs that the file names to
fetch credentials (`credHelpers`, `credsStore`) are not run.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import orjson

from kube.objects import mapping, text

DIRECTORY = "DOCKER_CONFIG"
"""The variable of the environment that names the directory of the file."""
FILE = "config.json"


def authorization(content: bytes, host: str, repository: str) -> str:
    """The header of this name with which a registry is asked; empty: there are no credentials for it.

    Raises ValueError: the file is none, in words that hold nothing of it.
    """
    try:
        auths = mapping(mapping(orjson.loads(content)).get("auths"))
    except orjson.JSONDecodeError as error:
        raise ValueError("it is no JSON") from error
    entries = {_place(name): mapping(entry) for name, entry in auths.items()}
    for place in _places(host, repository):
        if place in entries:
            return _basic(entries[place], place)
    return ""


def _places(host: str, repository: str) -> Iterator[str]:
    """The longest first."""
    parts = [host, *repository.split("/")]
    for length in range(len(parts), 0, -1):
        yield "/".join(parts[:length])


def _place(name: str) -> str:
    place = name.removeprefix("https://").removeprefix("http://").rstrip("/")
    return place.removesuffix("/v1").removesuffix("/v2")


def _basic(entry: dict[str, Any], place: str) -> str:
    """Raises ValueError."""
    given = text(entry.get("auth"))
    if not given and (name := text(entry.get("username"))):
        given = base64.b64encode(f"{name}:{text(entry.get('password'))}".encode()).decode()
    try:
        if b":" in base64.b64decode(given, validate=True):
            return f"Basic {given}"
    except binascii.Error:
        pass
    raise ValueError(f"the entry {place} has no auth that is base64 of NAME:PASSWORD")
