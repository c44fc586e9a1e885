"""From the path of a configuration file to its document: a mapping as it is written there, in YAML or JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from config.errors import ConfigError
from kube.files import read_bounded
from kube.yaml import check_structure

DECODING = "error decoding config"
_LARGEST_FILE = 1 << 20  # bytes
_READING = "error reading config file"


def read(path: Path) -> bytes:
    """Raises: ConfigError."""
    try:
        return read_bounded(path, most=_LARGEST_FILE)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError([f"open {path}: {reason}"], stage=_READING) from error
    except ValueError:
        raise ConfigError([f"{path} is larger than {_LARGEST_FILE} bytes"], stage=_READING) from None


def parse(text: bytes | str) -> Mapping[Any, Any]:
    """Raises: ConfigError."""
    document = _parsed(text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(["the document is not an object with fields"], stage=DECODING)
    return document


class _Loader(yaml.CSafeLoader):
    """Reads dates and `=` as the strings that they are to Go."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in {"timestamp", "value"}]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _parsed(text: bytes | str) -> Any:
    try:
        check_structure(text, aliases=True)
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_explain(error)], stage=DECODING) from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML lets errors of values escape as they are, such as those of `!!int x` and `!!bool x`.
        detail = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError([f"not readable as YAML: {detail}"], stage=DECODING) from error


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}{error.problem or error.context}"
