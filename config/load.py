"""From the path of a configuration file to a configuration that is complete and valid.

Read, decode and default, override, validate: each step reports all that it finds wrong, and a step that
found something is the last. Nothing here raises anything but ConfigError.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from config.decode import Decoder
from config.errors import ConfigError
from config.overrides import Overrides, override
from config.schema import API_VERSION, KIND, ResourceManagerConfiguration
from config.validation import check
from kube.validation import FieldError

_LARGEST_FILE = 1 << 20  # bytes
_DEEPEST_NESTING = 64  # libyaml's composer recurses in C: unlimited depth would crash the process
_DECODING = "error decoding config"
_READING = "error reading config file"
_NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, and what its author should know: fields that were ignored, names that are aliases."""

    config: ResourceManagerConfiguration
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decoded:
    """A configuration as its file has it, not validated yet; `conflicts` are part of what is wrong with it."""

    config: ResourceManagerConfiguration
    warnings: tuple[str, ...] = ()
    conflicts: tuple[FieldError, ...] = ()


def load(path: Path, *, overrides: Overrides = _NO_OVERRIDES, environment: Mapping[str, str]) -> LoadedConfig:
    """Read, decode, override and validate. Raises ConfigError."""
    decoded = decode(_read(path))
    config = override(decoded.config, overrides, environment=environment)
    check(config, conflicts=decoded.conflicts)
    return LoadedConfig(config, decoded.warnings)


def decode(text: bytes | str) -> Decoded:
    """The configuration of a YAML or JSON text, with defaults for what is not set. Raises ConfigError."""
    document = _parse(text)
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(["the document is not an object with fields"], stage=_DECODING)
    fields = {name: value for name, value in document.items() if name not in {"apiVersion", "kind"}}
    decoder = Decoder()
    config = decoder.block(ResourceManagerConfiguration, fields)
    errors = [*_identity_errors(document), *decoder.errors]
    if errors:
        raise ConfigError(errors, stage=_DECODING)
    return Decoded(config, tuple(decoder.warnings), tuple(decoder.conflicts))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([f"open {path}: {reason}"], stage=_READING) from error
    if len(content) > _LARGEST_FILE:
        raise ConfigError([f"{path} is larger than {_LARGEST_FILE} bytes"], stage=_READING)
    return content


def _identity_errors(document: Mapping[str, Any]) -> list[str]:
    """Both absent is right: some writers leave them out."""
    found = document.get("apiVersion"), document.get("kind")
    if found in ((None, None), (API_VERSION, KIND)):  # a tuple: what is found may be unhashable
        return []
    return [f"expected apiVersion {API_VERSION} and kind {KIND}, found {found[0]} and {found[1]}"]


class _Loader(yaml.CSafeLoader):
    """Reads dates and `=` as the strings that they are to Go."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in {"timestamp", "value"}]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _parse(text: bytes | str) -> Any:
    try:
        _check_depth(text)
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(error)], stage=_DECODING) from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML lets errors of values escape as they are, such as those of `!!int x` and `!!bool x`.
        detail = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError([f"not readable as YAML: {detail}"], stage=_DECODING) from error


def _check_depth(text: bytes | str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST_NESTING:
                raise ValueError(f"nested deeper than {_DEEPEST_NESTING} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}{error.problem or error.context}"
