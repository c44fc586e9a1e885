"""YAML as Go's sigs.k8s.io/yaml reads it: the 1.1 flavour of go-yaml v2, converted into JSON values.

Manifests are written for that reader, and a document that reads differently here would change or break what
runs in a cluster. PyYAML's own rules differ in many small ways (`y`, `0o644`, `1e3`, `12:30`, `2024-01-02`,
`=`), so only its C parser is used; the meaning of scalars is decided here. Parser events become nodes in C, and one
pass over the nodes makes values: as fast as PyYAML's safe loader.

Input is not trusted to be small or shallow. Nodes are counted while they are composed and again while anchors
are expanded, and so are characters, so that a bomb of aliases ends as an error before it takes memory.
"""

import base64
import binascii
import math
import re
import struct
import sys
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer, ComposerError
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_DEPTH = 200
"""Levels of nesting. The JSON encoder stops at 254, Python's own stack at 1000; real objects have about 50."""


MAX_NODES = 150_000
"""Maximum number of values of one document: freeing them after reading happens in one go, and blocks the process."""


MOST_EXPANDED = 50_000
"""Limit for values that anchors and merge keys add to those in the text, of everything decoded together: a few hundred
bytes expand to any number, and each takes time and memory like one in the text.
"""


class DialectError(ValueError):
    """The text is no YAML, or contains values that JSON can't represent; the message fits into one line."""


@dataclass(slots=True)
class Budget:
    """Number of values (keys included) that may still be made; shared by everything decoded together."""

    values: int
    characters: int = sys.maxsize
    """Characters of strings and keys. One behind an anchor is in memory once, and written as JSON many times."""
    expanded: int = MOST_EXPANDED
    """Values that anchors may still add."""
    unique_keys: bool = False
    """Refuse duplicate keys in a mapping: readers differ in which one counts, or merge both."""

    def take(self, count: int = 1, *, characters: int = 0) -> None:
        self.values -= count
        self.characters -= characters
        if self.values < 0:
            raise DialectError("too many values, counting what anchors expand to; split the content")
        if self.characters < 0:
            raise DialectError("too much text, counting what anchors expand to; split the content")

    @property
    def is_spent(self) -> bool:
        return self.values < 0 or self.characters < 0


def load(text: bytes | str, *, budget: Budget, first_line: int = 1) -> Any:
    """Value of the one document in `text`; None for an empty one.

    Text after a line `...` is not read. Any other text after the end of the document is an error, since it
    would be lost silently.

    Raises: DialectError: with the line, counted from `first_line`.
    """
    try:
        composer = _Composer(text, budget=budget)
        try:
            root = _compose(composer, text, first_line)
        except ComposerError as error:
            if error.problem != "second occurrence":
                raise
            composer = _RenamingComposer(text, budget=budget)
            root = _compose(composer, text, first_line)
        nodes = composer.nodes
    except yaml.reader.ReaderError as error:
        raise DialectError(f"{error.reason} at position {error.position}") from error
    except yaml.MarkedYAMLError as error:
        raise DialectError(_located(error, first_line)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise DialectError(" ".join(str(error).split())) from error
    return None if root is None else _expanded(root, budget, nodes)


def _expanded(root: Node, budget: Budget, nodes: int) -> Any:
    """Value of a document with this number of nodes."""
    before = budget.values
    budget.values = limit = min(before, nodes + budget.expanded)
    try:
        return _value(root, budget, MAX_DEPTH)
    finally:
        used = limit - budget.values
        budget.values = before - used
        budget.expanded = max(budget.expanded - max(used - nodes, 0), 0)


def _compose(composer: "_Composer", text: bytes | str, first_line: int) -> Node | None:
    if not composer.check_node():
        return None
    root = composer.get_node()
    if root is not None and _has_more(composer) and not _is_ended(text):
        raise DialectError(
            f"line {first_line + root.end_mark.line}: the document ends here, but there is more text; "
            "check the indentation, or put a line '---' between documents"
        )
    return root


def _has_more(composer: "_Composer") -> bool:
    try:
        return composer.check_node()
    except yaml.YAMLError:
        return True


_DOCUMENT_END = re.compile(rb"^\.\.\.(?:\s|$)", re.MULTILINE)


def _is_ended(text: bytes | str) -> bool:
    """Whether a line ends the document explicitly, so that the text after it is ignored on purpose."""
    return _DOCUMENT_END.search(text.encode() if isinstance(text, str) else text) is not None


_UNDEFINED_ALIAS = "found undefined alias"


def _located(error: yaml.MarkedYAMLError, first_line: int) -> str:
    mark = error.problem_mark or error.context_mark
    problem = " ".join(str(error.problem or error.context or "not readable").split())
    if problem.startswith(_UNDEFINED_ALIAS):
        problem = _UNDEFINED_ALIAS  # the rest may be a password that begins with an asterisk
    return f"line {first_line + mark.line}: {problem}" if mark else problem


# --- from text to nodes

_PLAIN = "plain"
"""Placeholder tag of an untagged, unquoted scalar: its meaning is decided when it is made a value."""
_STR = "tag:yaml.org,2002:str"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_BOOL = "tag:yaml.org,2002:bool"
_NULL = "tag:yaml.org,2002:null"
_BINARY = "tag:yaml.org,2002:binary"
_MERGE = "tag:yaml.org,2002:merge"


class _Composer(CParser):
    """Makes nodes; the parser calls these methods for every one of them."""

    def __init__(self, text: bytes | str, *, budget: Budget) -> None:
        super().__init__(text)
        self._budget = budget
        self.nodes = 0
        self._depth = 0

    def resolve(self, kind: type[Node], _value: str | None, implicit: tuple[bool, bool] | bool) -> str:
        if kind is ScalarNode:
            return _PLAIN if isinstance(implicit, tuple) and implicit[0] else _STR
        return ""

    def descend_resolver(self, _parent: Node | None, _index: Any) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DialectError(f"nested deeper than {MAX_DEPTH} levels")
        self.nodes += 1
        if self.nodes > self._budget.values:
            self._budget.take(self.nodes)
        if self.nodes > MAX_NODES:
            raise DialectError(f"more than {MAX_NODES} values in one document; divide the object")

    def ascend_resolver(self) -> None:
        self._depth -= 1


class _RenamingComposer(Composer, _Composer):
    """Permits redefinition of an anchor, which YAML allows and PyYAML's faster composer doesn't."""

    def __init__(self, text: bytes | str, *, budget: Budget) -> None:
        _Composer.__init__(self, text, budget=budget)
        Composer.__init__(self)

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()
        if isinstance(event, NodeEvent) and not isinstance(event, AliasEvent):
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


# --- from nodes to values


def _value(node: Node, budget: Budget, depth: int) -> Any:
    if isinstance(node, ScalarNode):
        budget.take(characters=len(node.value))
        return _scalar(node)
    budget.take()
    if depth == 0:
        raise DialectError(f"nested deeper than {MAX_DEPTH} levels, or an anchor contains itself")
    if isinstance(node, MappingNode):
        return _mapping(node, budget, depth)
    return [_value(item, budget, depth - 1) for item in node.value]


def _mapping(node: MappingNode, budget: Budget, depth: int) -> dict[str, Any]:
    # In order, the last one wins: as in go-yaml for equal keys, and merged ones too.
    result: dict[str, Any] = {}
    seen: set[str] = set()
    for key, value in node.value:
        if isinstance(key, ScalarNode) and key.value == "<<" and key.tag in (_PLAIN, _MERGE):
            _merge(result, value, budget, depth)
        else:
            name = _key(key)
            budget.take(0, characters=len(name))
            if budget.unique_keys:
                if name in seen:
                    raise DialectError(f"line {key.start_mark.line + 1}: a key occurs twice in a mapping; remove one")
                seen.add(name)
            result[name] = _value(value, budget, depth - 1)
    return result


def _merge(result: dict[str, Any], node: Node, budget: Budget, depth: int) -> None:
    sources = node.value if isinstance(node, SequenceNode) else [node]
    for source in reversed(sources):
        if not isinstance(source, MappingNode):
            raise DialectError("'<<' requires a mapping or a list of mappings")
        result.update(_value(source, budget, depth - 1))


def _key(node: Node) -> str:
    if not isinstance(node, ScalarNode):
        raise DialectError("the key of a mapping must be a string, not a list or a mapping")
    key = _resolved(node)
    if key is None:
        raise DialectError("the key of a mapping must be a string, not null; put it into quotes")
    if isinstance(key, bool):
        return "true" if key else "false"
    return _float_key(key) if isinstance(key, float) else str(key)


def _scalar(node: ScalarNode) -> Any:
    value = _resolved(node)
    return json_number(value) if isinstance(value, float) else value


def _resolved(node: ScalarNode) -> str | bool | float | None:
    tag, text = node.tag, node.value
    if tag == _PLAIN:
        return plain_scalar(text)
    if tag == _BINARY:
        return _binary(text)
    if tag == _NULL:
        return None
    wanted = _TYPED.get(tag)
    if wanted is None:
        return str(text)  # strings, and tags that mean nothing here
    value = plain_scalar(text)
    if type(value) not in wanted:
        raise DialectError(f"cannot read a value tagged !!{tag.rpartition(':')[2]}")
    return value


_TYPED = {_INT: (int,), _FLOAT: (int, float), _BOOL: (bool,)}


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise DialectError("a value tagged !!binary is not base64") from error


_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASE = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_INTEGER = 80
"""Longer digits are out of the range of 64 bits in every base; Python's int() must not see millions of them."""


def plain_scalar(text: str) -> str | bool | float | None:
    """Meaning of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    # go-yaml ignores underscores in numbers, but not in those that start with a point.
    plain = text if text[0] == "." else text.replace("_", "")
    if len(plain) < _LONGEST_INTEGER and (match := _INTEGER.fullmatch(plain)):
        base = match.lastgroup or "dec"
        number = int(match[base], _BASE[base]) * (-1 if match[1] == "-" else 1)
        if -(2**63) <= number < 2**64:
            return number
    if _REAL.fullmatch(plain):
        real = float(plain)
        if math.isfinite(real):
            return real
    return text


def json_number(value: float) -> float:
    """Number as Go writes it to JSON: whole numbers without a point, or an integer field would refuse them."""
    if not math.isfinite(value):
        raise DialectError("JSON does not support infinity and not-a-number; put them into quotes")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _float_key(value: float) -> str:
    """Key such as `1.5`: the shortest text for the same 32-bit float, as Go's %g prints it."""
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    if math.isnan(value):
        return ".nan"
    try:
        single = struct.pack("<f", value)
    except OverflowError as error:
        raise DialectError("the number that is the key of a mapping is too great; put it into quotes") from error
    texts = (f"{struct.unpack('<f', single)[0]:.{digits}e}" for digits in range(9))
    shortest = next(text for text in texts if struct.pack("<f", float(text)) == single)
    exponent = int(shortest.partition("e")[2])
    return f"{Decimal(shortest):f}" if -4 <= exponent < 6 else shortest


# --- structure alone


DEEPEST_NESTING = 64
"""Limit for the input of other loaders: libyaml's composer recurses in C, and unlimited depth would crash it."""


def check_structure(text: bytes | str, *, aliases: bool, events: int = sys.maxsize) -> None:
    """Refuse content that would take all memory or the whole stack, before it is loaded.

    A list or an object is two events, anything else is one.

    Raises:
        ValueError: it has too much.
        yaml.YAMLError: it is no YAML.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
        if number > events:
            raise ValueError(f"more than {events} values")
        if isinstance(event, AliasEvent) and not aliases:
            raise ValueError("aliases are not supported")
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST_NESTING:
            raise ValueError(f"nested deeper than {DEEPEST_NESTING} levels")


# --- writing


class Dumper(yaml.SafeDumper):
    """Quotes texts that other readers of YAML might interpret as numbers, times or truth values."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> ScalarNode:
        one_line = None if plain_scalar(text) == text else '"'
        return self.represent_scalar(_STR, text, style="|" if "\n" in text else one_line)


Dumper.add_representer(str, lambda dumper, text: dumper.represent_text(text))
Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_text(text))
