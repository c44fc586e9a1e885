"""Reference of a configuration file, generated from its schema.

`python -m config.reference resource_manager docs/configuration.md` writes that of `config/resource_manager` between the
two markers of the document. Those of other programs refer to it for common fields.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

from kube.clock import format_duration
from process.configuration.fields import Both, Duration, Member, is_block, is_list, is_map, join, members, without_none

BEGIN = "<!-- reference: begin (written by `python -m config.reference`) -->"
END = "<!-- reference: end -->"

_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string", Any: "value"}


_MAIN, _MAIN_DOCUMENT = "resource_manager", "configuration.md"


def reference(configuration: Any, like: Any = None) -> str:
    """Return one list of fields for each block, in the order of the file; blocks with the same fields share one.

    Args:
        configuration: one with all defaults.
        like: another one, for fields that the main document already explains.
    """
    explained = {} if like is None else _explained(like)
    return "\n\n".join(_section(blocks, fields) for fields, blocks in _sections(configuration, explained))


def inserted(document: str, configuration: Any, like: Any = None) -> str:
    """Return the document with the reference between its markers."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference(configuration, like)}\n\n{END}{after}"


_Blocks = list[tuple[str, str]]
"""Path and effect of each block."""
_Explained = dict[type | None, tuple[str, set[str]]]
"""Link to the explanation of a block's fields, and their items, by the type of the block; None for the whole file."""


def _sections(configuration: Any, explained: _Explained) -> Iterator[tuple[str, _Blocks]]:
    """Yield fields, and the blocks that have them."""
    sections: dict[str, _Blocks] = {}
    for path, block, effect in _blocks(configuration, "", ""):
        items = _fields(block)
        link, known = explained.get(type(block) if path else None, ("", set[str]()))
        own = [item for item in items if item not in known]
        further = f" {'Further fields: ' if own else 'See '}{link}." if len(own) < len(items) else ""
        sections.setdefault("\n".join(own) or path, []).append((path, f"{effect}{further}".strip()))
    yield from sections.items()


def _explained(configuration: Any) -> _Explained:
    anchors = {
        path: re.sub(r"[^\w\- ]", "", _title(blocks).lower()).replace(" ", "-")
        for _, blocks in _sections(configuration, {})
        for path, _ in blocks
    }
    found: _Explained = {}
    for path, block, _ in _blocks(configuration, "", ""):
        found.setdefault(
            type(block) if path else None, (f"[Configuration]({_MAIN_DOCUMENT}#{anchors[path]})", set(_fields(block)))
        )
    return found


def _fields(block: Any) -> list[str]:
    shown = [member for member in members(type(block)) if not _has_section(member) and not _is_switch(member)]
    return list(_items(shown, block))


def _blocks(block: Any, path: str, effect: str) -> Iterator[tuple[str, Any, str]]:
    """Yield path, block and effect of this block and all in it."""
    yield path, block, effect
    for member in members(type(block)):
        where, kind, inner = join(path, member.name), without_none(member.kind), getattr(block, member.attribute)
        if is_list(kind):
            where, kind, inner = f"{where}[]", get_args(kind)[0], None
        if is_block(kind):
            above = _effect(member, type(block)) if _has_section(member) else ""
            yield from _blocks(kind() if inner is None else inner, where, above)


def _has_section(member: Member) -> bool:
    """Whether a block is described above its own fields instead of among those of another."""
    return is_block(without_none(member.kind))


def _is_switch(member: Member) -> bool:
    """Whether it only switches its block on, which is documented above its fields."""
    return member.name == "enabled" and not member.setting.effect


def _title(blocks: _Blocks) -> str:
    return ", ".join(f"`{path}`" if path else "Top level" for path, _ in blocks)


def _section(blocks: _Blocks, fields: str) -> str:
    effects = [effect for _, effect in blocks if effect]
    has_fields = fields.startswith("- ")
    if len(effects) > 1:
        effects = [f"- `{path}`: {effect}" for path, effect in blocks]
        effects += ["\nFields:"] if has_fields else []
    parts = (f"### {_title(blocks)}", "\n".join(effects), fields if has_fields else "")
    return "\n\n".join(part for part in parts if part)


def _items(shown: list[Member], block: Any) -> Iterator[str]:
    """Yield one item for each field; neighbors with the same text share one."""
    texts = ((f"`{member.name}`", _text(member, block)) for member in shown)
    for text, fields in groupby(texts, key=itemgetter(1)):
        yield f"- {', '.join(name for name, _ in fields)} {text}"


def _text(member: Member, block: Any) -> str:
    kind = _type(member.kind, _default(member, getattr(block, member.attribute)))
    return f"({kind}): {_effect(member, type(block))}"


def _type(kind: Any, default: str = "") -> str:
    """Return the type of a value, unless its default shows that."""
    kind = without_none(kind)
    if is_list(kind):
        return f"list of {_type(get_args(kind)[0])}s{default}"
    if is_map(kind):
        return f"map of {_type(get_args(kind)[1])}s{default}"
    if default and kind is not float:
        return default.removeprefix(", ")
    if kind == Duration:
        return "duration"
    return "object" if is_block(kind) else f"{_SCALARS[kind]}{default}"


def _default(member: Member, default: Any) -> str:
    """Return the default; empty for lists and maps without entries."""
    if default is None or default in ((), {}):
        return ""
    value = _value(member.kind, default)
    return f", {value}*" if member.setting.zero_is_unset else f", {value}"


def _value(kind: Any, default: Any) -> str:
    if kind == Duration:
        return f"`{_short(format_duration(default))}`"
    if kind is float:
        return f"`{default:g}`"
    return f"`{json.dumps(default)}`"


def _short(duration: str) -> str:
    """Return 1h for 1h0m0s, as users write it."""
    for shorter, longer in (("m", "m0s"), ("h", "h0m")):
        if duration.endswith(longer):
            duration = duration.removesuffix(longer) + shorter
    return duration


def _rules(member: Member, cls: type) -> Iterator[str]:
    switched = any(other.name == "enabled" for other in members(cls))
    for check in (each for each in member.setting.checks if each.demand):
        rule = f"{check.demand} (even if disabled)" if switched and check.even_if_disabled else check.demand
        rule = rule.removeprefix("must be ")
        yield f"{rule[0].upper()}{rule[1:]}."


def _effect(member: Member, cls: type) -> str:
    sentences = [*filter(None, [member.setting.effect]), *_rules(member, cls)]
    if _has_section(member) and (block := without_none(member.kind)) and any(map(_is_switch, members(block))):
        sentences.append("Enabled by default." if block().enabled else "Opt-in.")
    if alias := member.setting.alias:
        other = " (a single one)" if alias.kind else ""
        sentences.append(f"Old name: `{alias.name}`{other}; {_BOTH[alias.both]}.")
    return " ".join(sentences)


_BOTH = {
    Both.ALIAS_IGNORED: "this one has precedence",
    Both.MUST_AGREE: "both must be equal",
    Both.NOT_TOGETHER: "both are an error",
}


if __name__ == "__main__":
    program, target = sys.argv[1], Path(sys.argv[2])
    own, main = (import_module(f"config.{name}").COMPONENT.configuration()() for name in (program, _MAIN))
    target.write_text(inserted(target.read_text(), own, None if program == _MAIN else main))
