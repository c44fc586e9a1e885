"""Secrets that the files of an OperatingSystemConfig refer to.

The Secrets with these configurations are in the cluster of the nodes, whose owners may write anything into them: deep
nesting would crash the parser, and aliases could expand without limit. No honest writer uses either.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kube.objects import Object, metadata
from kube.yaml import check_structure

KEY = "osc.yaml"
_MOST_EVENTS = 100_000


@dataclass(frozen=True, slots=True)
class Reference:
    """A Secret with the content of a file; `hostname` is empty if it is for all hosts."""

    secret: str
    hostname: str


def references(secret: Object) -> tuple[Reference, ...]:
    """Return the references in a Secret, none if it has no OperatingSystemConfig.

    Raises:
        ValueError: it is unreadable.
    """
    encoded = (secret.get("data") or {}).get(KEY)
    if not encoded:
        return ()
    try:
        return tuple(_references(_load(base64.b64decode(encoded, validate=True))))
    except (binascii.Error, yaml.YAMLError, ValueError, AttributeError, TypeError) as error:
        meta = metadata(secret)
        where = f'{KEY} of secret "{meta.get("namespace")}/{meta.get("name")}"'
        # Without the text of the cause, which may quote the Secret.
        raise ValueError(f"{where} is not an OperatingSystemConfig") from error


def _load(text: bytes) -> Any:
    check_structure(text, aliases=False, events=_MOST_EVENTS)
    return yaml.load(text, yaml.CSafeLoader)


def _references(config: Any) -> Iterator[Reference]:
    for part, field in (("spec", "files"), ("status", "extensionFiles")):
        for file in (config.get(part) or {}).get(field) or []:
            name = ((file.get("content") or {}).get("secretRef") or {}).get("name")
            if name:
                yield Reference(str(name), str(file.get("hostName") or ""))
