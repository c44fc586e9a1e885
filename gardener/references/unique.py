"""ConfigMaps and Secrets whose name depends on their content."""

import base64
import copy
import hashlib
import json

from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references.keys import CONFIG_MAP, SECRET
from kube.objects import Object, labels, metadata

_HASH_DIGITS = 8


def collectable_kind(obj: Object) -> str:
    """As it is called in annotations; empty for all but ConfigMaps and Secrets."""
    return _KINDS.get((obj.get("apiVersion") or "", obj.get("kind") or ""), "")


def make_unique(obj: Object) -> Object:
    """A copy of a ConfigMap or Secret that is immutable, labelled, and called `<name>-<hash of its content>`.

    Raises:
        ValueError: it is neither, or has no name.
    """
    if not collectable_kind(obj):
        raise ValueError(f"unhandled object type {obj.get('apiVersion')} {obj.get('kind')}")
    name = metadata(obj).get("name")
    if not name:
        raise ValueError(f"a {obj['kind']} without metadata.name can't be named after its content")
    unique = copy.deepcopy(obj)
    unique["immutable"] = True
    unique["metadata"]["name"] = f"{name}-{content_hash(obj)}"
    unique["metadata"]["labels"] = {**labels(obj), GARBAGE_COLLECTABLE: "true"}
    return unique


def content_hash(obj: Object) -> str:
    """Eight hex digits; the same for a text whether it stands in `data` or in `stringData`."""
    data = {**(obj.get("data") or {})}
    if obj["kind"] == "Secret":
        data |= {key: _encoded(text) for key, text in (obj.get("stringData") or {}).items()}
    else:
        data = {key: _encoded(text) for key, text in data.items()} | (obj.get("binaryData") or {})
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_HASH_DIGITS]


_KINDS = {("v1", "ConfigMap"): CONFIG_MAP, ("v1", "Secret"): SECRET}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
