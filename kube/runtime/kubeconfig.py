"""Kubeconfig files: read within bounds, and their entries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kube.files import read_bounded
from kube.objects import Object, mappings
from kube.yaml import check_structure

LARGEST_FILE = 4 << 20  # bytes


_REMEDIES: dict[type[OSError], str] = {
    FileNotFoundError: "the file does not exist; mount it, or correct the path",
    IsADirectoryError: "it is a directory; use the path of a file in it",
    PermissionError: "this user may not read it; change its mode or owner, or fsGroup of the Pod",
}


class ConfigurationError(Exception):
    """A kubeconfig or the in-cluster configuration can't be used; the message states the problem and the place."""


def read_kubeconfig(path: Path, *, trusted: bool = False) -> dict[str, Any]:
    """Content of the file, which is a mapping and otherwise unchecked.

    Raises: ConfigurationError: it can't be read. The text never quotes the file: any part of it may be a credential.
    """
    try:
        # Users may pass one to a tool by a pipe.
        content = read_bounded(path, most=LARGEST_FILE, regular=not trusted)
    except OSError as error:
        raise ConfigurationError(f"cannot read the kubeconfig {path}: {_REMEDIES.get(type(error), error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"cannot read the kubeconfig {path}: {error}") from error
    return parse_kubeconfig(content, origin=str(path), trusted=trusted)


def parse_kubeconfig(content: bytes, *, origin: str, trusted: bool = False) -> dict[str, Any]:
    """Parse a kubeconfig; `origin` is its name in errors."""
    if len(content) > LARGEST_FILE:
        raise ConfigurationError(f"cannot read the kubeconfig {origin}: it is larger than {LARGEST_FILE} bytes")
    try:
        check_structure(content, aliases=trusted)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"cannot read the kubeconfig {origin}: {_problem(error)}") from None
    except ValueError as error:
        raise ConfigurationError(f"cannot read the kubeconfig {origin}: {error}") from error
    try:
        document = yaml.load(content, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        # PyYAML lets errors of values escape unchanged, such as those of `!!int x` and `!!timestamp x`.
        raise ConfigurationError(f"cannot read the kubeconfig {origin}: {_problem(error)}") from None
    if not isinstance(document, dict):
        raise ConfigurationError(f"the kubeconfig {origin} is not a mapping")
    return document


def _problem(error: Exception) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return f"it is not valid YAML{f' (line {mark.line + 1})' if mark else ''}"


def find_entry(document: Mapping[str, Any], field: str, name: Any, inner: str) -> Object | None:
    """Usable entry of this name: its `cluster` in `clusters`, and so on; empty if it has none. None if missing."""
    for entry in mappings(document.get(field)):
        if entry.get("name") == name:
            found = entry.get(inner) or {}
            if isinstance(found, dict):
                return found
    return None
