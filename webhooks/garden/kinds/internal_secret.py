"""InternalSecrets: Secrets that members of a Project cannot read."""

import base64
import binascii
import re
from collections.abc import Iterator

import orjson

from gardener.api.garden.internal_secret import INTERNAL_SECRET as DEFINITION
from kube.objects import annotations, string_map, text
from kube.validation import invalid, required, too_long
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write
from webhooks.rules.shapes import child

LARGEST = 1 << 20
"""Maximum size in bytes of all values together."""
_LONGEST_KEY = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_HIDDEN = "<secret contents redacted>"


def merge_texts(write: Write) -> None:
    texts = string_map(write.new.pop("stringData", None))
    if texts:
        data = child(write.new, "data")
        data.update({key: base64.b64encode(value.encode()).decode() for key, value in texts.items()})


def keep_type(write: Write) -> None:
    if write.is_update and not write.new.get("type") and write.old.get("type"):
        write.new["type"] = write.old["type"]


def key_errors(write: Write) -> Iterator[Finding]:
    size = 0
    for key, value in string_map(write.new.get("data")).items():
        path = f"data[{key}]"
        if len(key) > _LONGEST_KEY:
            yield too_long(path, most=_LONGEST_KEY)
        if key in {".", ".."} or key.startswith("..") or _KEY.fullmatch(key) is None:
            yield invalid(
                path, key, "a valid key consists of alphanumeric characters, '-', '_' or '.', such as 'key.name'"
            )
        size += len(_decoded(value) or b"")
    if size > LARGEST:
        yield too_long("data", most=LARGEST)


def type_errors(write: Write) -> Iterator[Finding]:
    """Check the data by type, like those of Secrets."""
    data = string_map(write.new.get("data"))
    match text(write.new.get("type")):
        case "kubernetes.io/service-account-token":
            if not annotations(write.new).get(_ACCOUNT_NAME):
                yield required(f"metadata.annotations[{_ACCOUNT_NAME}]")
        case "kubernetes.io/dockercfg":
            yield from _json_errors(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            yield from _json_errors(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if not data.keys() & {"username", "password"}:
                yield required("data[username]")
                yield required("data[password]")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                yield required("data[ssh-privatekey]")
        case "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    yield required(f"data[{key}]")


def _json_errors(data: dict[str, str], key: str) -> Iterator[Finding]:
    path = f"data[{key}]"
    if key not in data:
        yield required(path)
        return
    try:
        orjson.loads(_decoded(data[key]) or b"")
    except orjson.JSONDecodeError:
        yield invalid(path, _HIDDEN, "must be JSON")


def _decoded(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None


INTERNAL_SECRET = Kind(
    definition=DEFINITION,
    defaults=(merge_texts, keep_type),
    checks=(key_errors, type_errors),
)
