"""Words of the field, and the ones that they replace; tests compare code, manifests and documentation with these."""

import inspect
import re
from collections.abc import Iterator

_PREPOSITIONS = (
    "of from for by with without in on at to as about after before below beside besides between into under over through"
    " during against among within until till upon behind near"
)
NO_STARTS = frozenset([*_PREPOSITIONS.split(), "what", "who", "which", "whose", "where", "when", "how", "raises"])
INSTEAD = {
    "requested, request": "asked asks",
    "reports, states": "said says say",
    "again, recreate, restart": "anew",
    "a user, another client": "somebody whoever",
    "simulated": "played",
}
"""What to write, and the words that it replaces."""
_WORDS = {word: plain for plain, words in INSTEAD.items() for word in words.split()}
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`|^ {4,}.*$", re.MULTILINE)
"""Names of code, and examples."""


def problems(docstring: str) -> Iterator[str]:
    text = inspect.cleandoc(docstring)
    first = re.split(r"[\s.,:;]", text, maxsplit=1)[0]
    if first.lower() in NO_STARTS:
        yield f"starts with '{first}': begin with a verb or a noun"
    yield from misused(CODE.sub("", text))


def misused(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        yield f"'{found[0]}' - write: {_WORDS[found[0].lower()]}"
