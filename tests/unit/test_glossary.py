"""Words that product, tests and documentation do without: each has a plain one in its place.

The words that mean something in this field (leader, finalizer, drift, ...) are those of Kubernetes. A word here is
either older than them, or says that somebody notices something without saying who.
"""

import re
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
INSTEAD = {
    "report, log, say": "tell tells told telling teller",
    "the name of the thing": "situation situations facts story mandate knowledge",
    "desired, wanted": "wish wishes wished",
    "assess, evaluate, check": "judge judges judged judging verdict verdicts",
    "count": "tally tallies",
    "changed, affects, the name of the predicate": "matters concerns concerned",
    "the name of the check": "gate gates",
    "ensure": "assure assures assured",
    "start, startup, end, shutdown": "beginning ending",
    "the subject, or no one": "nobody",
    "rewound": "other-past",
    "uncertain, unverified": "in-doubt",
    "idle, in steady state": "at-rest",
    "yielding": "giving-way",
    "restored, corrected": "put-right",
    "managed": "looked-after",
}
"""What to write, and the words (or pairs) that it replaces."""
TERMS = re.compile(
    r"(feature|scheduling|readiness)[ _-]?gates?|gate_name|(data|encryption) at rest|podSchedulingReadiness",
    re.IGNORECASE,
)
"""Of Kubernetes, or of cryptography."""
LEFT_OUT = (
    *("tests/unit/test_glossary.py", "tests/conformance/", "tests/golden/", "tests/fuzz/corpora/"),
    *("manifests/crds/", "gardener/api/managed_resource.yaml"),
)
"""This list itself, and what others have written."""
_KINDS = ("*.py", "*.md", "*.yaml", "*.html", "*.js")
_WORDS = {word.replace("-", " "): plain for plain, words in INSTEAD.items() for word in words.split()}
_CANDIDATE = re.compile("|".join(sorted((word.replace(" ", r"[\s_]+") for word in _WORDS), key=len, reverse=True)))
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def misused(text: str) -> Iterator[str]:
    """Each place with a word, also as a part of an identifier, as `<line>: '<word>' - say: <others>`."""
    # Without conditions around the words: these would take ten times as long.
    for found in _CANDIDATE.finditer(text.lower() if text.isascii() else text.translate(_LOWER)):
        start, end = found.span()
        if _begins_in_a_word(text, start) or _ends_in_a_word(text, end) or _is_term(text, start):
            continue
        word = re.sub(r"[\s_]+", " ", found[0])
        yield f"{text.count(chr(10), 0, start) + 1}: '{word}' - say: {_WORDS[word]}"


def _begins_in_a_word(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    return before.isalpha() and not (before.islower() and text[start].isupper())


def _ends_in_a_word(text: str, end: int) -> bool:
    after = text[end : end + 1]
    return after.islower() or (after.isupper() and text[end - 1].isupper())


def _is_term(text: str, start: int) -> bool:
    line = text.rfind("\n", 0, start) + 1
    terms = TERMS.finditer(text[line : start + 100].partition("\n")[0])
    return any(line + term.start() <= start < line + term.end() for term in terms)


def test_words_that_have_a_plain_one_are_not_used() -> None:
    listed = subprocess.run(
        ["git", "ls-files", *_KINDS], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = [name for name in listed if not name.startswith(LEFT_OUT) and (PROJECT / name).exists()]
    assert len(names) > 1000
    assert [f"{name}:{each}" for name in names for each in misused(f"{(PROJECT / name).read_text()}\n{name}")] == []


@pytest.mark.parametrize(
    ("planted", "word"),
    [
        ("# Nobody does that.", "nobody"),
        ("def test_who_is_told(): ...", "told"),
        ("class SituationOfSeed: ...", "situation"),
        ("isJudged = True", "judged"),
        ("the clusters are at rest", "at rest"),
        ("def at_rest(): ...", "at rest"),
        ("It is put right.", "put right"),
        ("a gate that is no featureGate", "gate"),
    ],
)
def test_a_word_is_found_wherever_it_stands(planted: str, word: str) -> None:
    (found,) = misused(f"fine\n{planted}\n")
    assert found.startswith(f"2: '{word}' - say: ")


@pytest.mark.parametrize(
    "text",
    [
        "feature gates and schedulingGates",
        "--feature-gates=A=true",
        "encryption at rest",
        "delegate, foretold",
        "at least rest",
    ],
)
def test_other_words_are_not(text: str) -> None:
    assert list(misused(text)) == []
