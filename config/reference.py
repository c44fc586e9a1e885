"""The reference of the configuration file, made from the schema.

`python -m config.reference docs/configuration.md` writes it between the two markers of that file.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from config.fields import Both, Duration, Member, is_block, is_list, is_map, join, members, without_none
from config.schema import ResourceManagerConfiguration
from kube.objects import format_duration

BEGIN = "<!-- reference: begin (written by `python -m config.reference`) -->"
END = "<!-- reference: end -->"

_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}
_HEADER = "| Field | Type | Default | Rules | Effect |\n|---|---|---|---|---|"


def reference() -> str:
    """One table for each block, in the order of the file."""
    sections: dict[str, list[str]] = {}
    for path, cls in _blocks(ResourceManagerConfiguration, ""):
        table = "\n".join((_HEADER, *(_row(member, cls) for member in members(cls))))
        sections.setdefault(table, []).append(path)  # blocks with the same fields share a table
    return "\n\n".join(f"### {_title(paths)}\n\n{table}" for table, paths in sections.items())


def inserted(document: str) -> str:
    """The document with the reference between its markers."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def _blocks(cls: type, path: str) -> Iterator[tuple[str, type]]:
    yield path, cls
    for member in members(cls):
        where, kind = join(path, member.name), without_none(member.kind)
        if is_list(kind):
            where, kind = f"{where}[]", get_args(kind)[0]
        if is_block(kind):
            yield from _blocks(kind, where)


def _title(paths: list[str]) -> str:
    return ", ".join(f"`{path}`" if path else "Top level" for path in paths)


def _row(member: Member, cls: type) -> str:
    cells = (f"`{member.name}`", _type(member.kind), _default(member), _rules(member, cls), _effect(member))
    return f"| {' | '.join(cells)} |"


def _type(kind: Any) -> str:
    kind = without_none(kind)
    if kind == Duration:
        return "duration"
    if is_list(kind):
        return f"list of {_type(get_args(kind)[0])}s"
    if is_map(kind):
        return "map of strings"
    return "object" if is_block(kind) else _SCALARS[kind]


def _default(member: Member) -> str:
    kind, default = member.kind, member.default
    if default is None:
        return "unset"
    if is_block(kind):
        return "`{}`"
    if kind == Duration:
        return f"`{_short(format_duration(default))}`"
    if kind is float:
        return f"`{default:g}`"
    return f"`{json.dumps(default)}`"


def _short(duration: str) -> str:
    """1h0m0s as 1h: as people write it."""
    for shorter, longer in (("m", "m0s"), ("h", "h0m")):
        if duration.endswith(longer):
            duration = duration.removesuffix(longer) + shorter
    return duration


def _rules(member: Member, cls: type) -> str:
    switched = any(other.name == "enabled" for other in members(cls))
    return "; ".join(
        f"{check.demand} (even if disabled)" if switched and check.even_if_disabled else check.demand
        for check in member.setting.checks
    )


def _effect(member: Member) -> str:
    sentences = [member.setting.effect]
    if member.setting.zero_is_unset:
        zero = "`0s`" if member.kind == Duration else f"`{json.dumps(without_none(member.kind)())}`"
        sentences.append(f"{zero.replace('0.0', '0')} counts as unset.")
    if alias := member.setting.alias:
        other = " (a single one)" if alias.kind else ""
        sentences.append(f"Also accepted as `{alias.name}`{other}, with a warning; {_BOTH[alias.both]}.")
    return " ".join(sentences)


_BOTH = {
    Both.ALIAS_IGNORED: "if both are given, this name wins",
    Both.MUST_AGREE: "if both are given, they must not differ",
    Both.NOT_TOGETHER: "both together are an error",
}


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(inserted(target.read_text()))
