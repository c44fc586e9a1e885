"""All that is wrong with a configuration, at once: the rules of each field, and those of a block between its fields."""

from collections.abc import Iterator
from typing import Any

from config.errors import ConfigError
from config.fields import is_block, join, members
from kube.validation import FieldError


def check(config: Any, *, conflicts: tuple[FieldError, ...] = (), unknown: tuple[str, ...] = ()) -> None:
    """Raise a ConfigError with all that is wrong, that which decoding found wrong with names included.

    Args:
        config: the block of all fields.
        conflicts: from decoding.
        unknown: what decoding told of unknown fields: one that is missing may be misspelt.
    """
    if errors := [*conflicts, *validate(config)]:
        raise ConfigError([*errors, *unknown])


def validate(config: Any) -> Iterator[FieldError]:
    yield from _block_errors(config, "", on=True)


def _block_errors(block: Any, path: str, *, on: bool) -> Iterator[FieldError]:
    on = on and getattr(block, "enabled", True)
    for member in members(type(block)):
        value, where = getattr(block, member.attribute), join(path, member.reported_as)
        if value is None:
            continue
        for rule in member.setting.checks:
            if on or rule.even_if_disabled:
                yield from rule.errors(where, value)
        if is_block(type(value)):
            yield from _block_errors(value, where, on=on)
        elif isinstance(value, tuple):
            for index, each in enumerate(value):
                if is_block(type(each)):
                    yield from _block_errors(each, f"{where}[{index}]", on=on)
    if on and hasattr(block, "errors"):
        yield from block.errors(path)
