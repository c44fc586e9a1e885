"""Kubeconfigs in Secrets: read from YAML or JSON, changed, and written as YAML.

A kubeconfig is known by its structure, version v1: unknown fields are dropped, and empty ones are left out unless
readers expect them. So it is written in one way, whichever program wrote it before.

Errors name the field, never its content: any field may hold a credential.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from kube.objects import Object
from kube.yaml import Budget, DialectError, load, plain_scalar

_MOST_VALUES = 100_000
_NO_FOLDING = 1 << 30


class KubeconfigError(ValueError):
    """The kubeconfig can't be read, or lacks the fields to change."""


# --- the structure

_Reader = Callable[[Any, str], Any]
"""Function from a value and its path to the value to write; None stands for empty values."""


@dataclass(frozen=True, slots=True)
class _Field:
    read: _Reader
    empty: Any = None
    """Value written for an empty field; None to leave it out."""
    always: bool = False


def _text(value: Any, path: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise KubeconfigError(f"{path} must be a string; put it into quotes")
    return value or None


def _flag(value: Any, path: str) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise KubeconfigError(f"{path} must be true or false")
    return value or None


def _content(value: Any, path: str) -> str | None:
    text = _text(value, path)
    try:
        return base64.b64encode(base64.b64decode(re.sub("[\r\n]", "", text), validate=True)).decode() if text else None
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{path} must be base64") from error


def _raw(value: Any, _path: str) -> Any:
    return value


def _list(read: _Reader) -> _Reader:
    def read_list(value: Any, path: str) -> list[Any] | None:
        if value is not None and not isinstance(value, list):
            raise KubeconfigError(f"{path} must be a list")
        return [read(item, f"{path}[{index}]") for index, item in enumerate(value)] if value else None

    return read_list


def _map(read: _Reader, *, of: Any) -> _Reader:
    """Reader of a mapping with keys of any name; `of` is written for an empty value."""

    def read_map(value: Any, path: str) -> Object | None:
        entries = _mapping(value, path)
        return {name: read(item, f"a value of {path}") or of for name, item in entries.items()} or None

    return read_map


def _struct(**fields: _Field) -> _Reader:
    named = {name.strip("_").replace("_", "-"): field for name, field in fields.items()}

    def read_struct(value: Any, path: str) -> Object:
        given, result = _mapping(value, path), {}
        for name, field in named.items():
            found = field.read(given.get(name), f"{path}.{name}" if path else name)
            if found is not None or field.always:
                result[name] = field.empty if found is None else found
        return result

    return read_struct


def _optional(read: _Reader) -> _Reader:
    return lambda value, path: None if value is None else read(value, path)


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise KubeconfigError(f"{path or 'it'} must be a mapping")
    return value or {}


_TEXT = _Field(_text)
_FLAG = _Field(_flag)
_CONTENT = _Field(_content)
_NAME = _Field(_text, "", always=True)


def _named(**inner: _Field) -> _Reader:
    return _list(_struct(name=_NAME, **inner))


_EXTENSIONS = _Field(_named(extension=_Field(_raw, always=True)))
_CLUSTER = _struct(
    server=_NAME,
    tls_server_name=_TEXT,
    insecure_skip_tls_verify=_FLAG,
    certificate_authority=_TEXT,
    certificate_authority_data=_CONTENT,
    proxy_url=_TEXT,
    disable_compression=_FLAG,
    extensions=_EXTENSIONS,
)
_CONTEXT = _struct(cluster=_NAME, user=_NAME, namespace=_TEXT, extensions=_EXTENSIONS)
_EXEC = _struct(
    command=_NAME,
    args=_Field(_list(lambda value, path: _text(value, path) or ""), always=True),
    env=_Field(_list(_struct(name=_NAME, value=_NAME)), always=True),
    apiVersion=_TEXT,
    installHint=_TEXT,
    provideClusterInfo=_Field(_flag, False, always=True),
    interactiveMode=_TEXT,
)
_USER = _struct(
    client_certificate=_TEXT,
    client_certificate_data=_CONTENT,
    client_key=_TEXT,
    client_key_data=_CONTENT,
    token=_TEXT,
    tokenFile=_TEXT,
    as_=_TEXT,
    as_uid=_TEXT,
    as_groups=_Field(_list(lambda value, path: _text(value, path) or "")),
    as_user_extra=_Field(_map(_list(lambda value, path: _text(value, path) or ""), of=None)),
    username=_TEXT,
    password=_TEXT,
    auth_provider=_Field(_optional(_struct(name=_NAME, config=_Field(_map(_text, of=""), always=True)))),
    exec=_Field(_optional(_EXEC)),
    extensions=_EXTENSIONS,
)
_CONFIG = _struct(
    preferences=_Field(_optional(_struct(colors=_FLAG, extensions=_EXTENSIONS))),
    clusters=_Field(_named(cluster=_Field(_CLUSTER, always=True)), always=True),
    contexts=_Field(_named(context=_Field(_CONTEXT, always=True)), always=True),
    users=_Field(_named(user=_Field(_USER, always=True)), always=True),
    current_context=_NAME,
    extensions=_EXTENSIONS,
)
_IDENTITY = {"apiVersion": "v1", "kind": "Config"}


# --- reading and writing


def decode(content: bytes) -> Object:
    """Return the kubeconfig in normal form.

    Raises:
        KubeconfigError: it is no kubeconfig.
    """
    try:
        document = load(content, budget=Budget(_MOST_VALUES))
    except DialectError as error:
        # Messages of the parser may quote the text; the place is enough.
        line = re.match(r"line \d+", str(error))
        raise KubeconfigError(f"it is neither YAML nor JSON{f' ({line[0]})' if line else ''}") from None
    given = _mapping(document, "")
    for name, value in _IDENTITY.items():
        if given.get(name) not in (None, "", value):
            raise KubeconfigError(f"{name} must be {value} if set")
    return {**_CONFIG(given, ""), **_IDENTITY}


def encode(config: Object) -> bytes:
    """Encode as YAML, keys sorted."""
    text: str = yaml.dump(config, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=_NO_FOLDING)
    return text.encode()


class _Dumper(yaml.CSafeDumper):
    """Quotes strings that Go's reader, unlike PyYAML's rules, takes for other types."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = '"' if plain_scalar(text) != text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


# --- the current context


def current_user(config: Object) -> Object:
    """Return the user of the current context; changes of it change the kubeconfig.

    Raises:
        KubeconfigError: there is none.
    """
    return _current(config, "user", "authInfo")


def current_cluster(config: Object) -> Object:
    """Return the cluster of the current context; changes of it change the kubeconfig.

    Raises:
        KubeconfigError: there is none.
    """
    return _current(config, "cluster", "cluster")


def _current(config: Object, field: str, called: str) -> Object:
    context = _find(config["contexts"], config["current-context"], "context")
    if context is None:
        raise KubeconfigError("did not find context defined in current context")
    found = _find(config[f"{field}s"], context[field], field)
    if found is None:
        raise KubeconfigError(f"did not find {called} of current context named {context[field]}")
    return found


def _find(entries: list[Object] | None, name: str, field: str) -> Object | None:
    return next((entry[field] for entry in entries or () if entry["name"] == name), None)
