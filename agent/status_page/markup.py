"""HTML out of elements: whatever is not markup already is escaped, so nothing that somebody wrote into a cluster can
become a part of the page.
"""

from html import escape

_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
_SHOWN = str.maketrans({code: "\ufffd" for code in (*_CONTROLS, *_BIDIRECTIONAL) if chr(code) not in "\n\t"})
"""What no browser shows, or what makes it show the rest in another order."""
_VOID = frozenset({"img", "input", "link", "meta", "wbr"})


class Markup(str):
    """A text that is HTML."""

    __slots__ = ()


Child = str | int | None
"""A Markup as it is, all else as text; None for nothing."""


def text(value: Child) -> Markup:
    if isinstance(value, Markup):
        return value
    return Markup("" if value is None else _escaped(str(value)))


def _escaped(value: str) -> str:
    return escape(value if value.isprintable() else value.translate(_SHOWN))


def joined(*children: Child) -> Markup:
    return Markup("".join(map(text, children)))


def element(tag: str, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Attributes: `class_` for class, `aria_label` for aria-label; True for one without a value, None for none."""
    told = "".join(_attribute(name, value) for name, value in attributes.items() if value is not None)
    if tag in _VOID:
        return Markup(f"<{tag}{told}>")
    return Markup(f"<{tag}{told}>{joined(*children)}</{tag}>")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'
