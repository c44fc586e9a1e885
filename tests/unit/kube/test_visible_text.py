"""What others wrote is shown, and never obeyed by a terminal."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent.resource_manager.status_page.rendering import environment
from devcluster.demo.screen import Screen
from kube.visible_text import LINES, TEXT, is_visible, printable, printable_json
from kubectl import output
from kubectl.style import RED, Word, rendered, table
from process.program import Exit

HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[31mred",
    "\x9b2J",
    "all is well\r✔ forged",
    "one\n✔ forged",
    "a\tb\vc\fd\be\0f\x7f",
    "a\x85b\u2028c\u2029d",
    "file\u202egnp.exe\u202c",
    "\u2066isolated\u2069\u200e\u200f",
    "zero\u200bwidth\u200d\ufeff\u2060",
    "tag\U000e0041\U000e007f",
    "\xa0\xad",
    "blank\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u180b\U0001d159",
    "selected\ufe00\ufe0f\U000e0100\U000e01ef",
]
TEXTS = st.text()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain, grün, 日本, ✔ → …", "plain, grün, 日本, ✔ → …"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("one\r\ntwo\tthree", r"one\r\ntwo\tthree"),
        ("\x9b2J\x7f\0", r"\x9b2J\x7f\x00"),
        ("a\u2028b\u202ec\u200bd\ufeff", r"a\u2028b\u202ec\u200bd\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_cannot_be_seen_is_a_code(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "hidden",
    [0x034F, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180F, 0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFFA0, 0x1D159, 0xE0100, 0xE01EF],
)
def test_letters_and_marks_that_nothing_is_drawn_for_are_shown_as_codes(hidden: int) -> None:
    shown = printable(f"a{chr(hidden)}b")
    assert shown == f"a{chr(hidden).encode('unicode_escape').decode()}b"
    assert json.loads(printable_json(json.dumps(chr(hidden), ensure_ascii=False).encode())) == chr(hidden)
    assert printable_json(chr(hidden).encode()).isascii()
    assert printable("ü é 漢字 한국어 עברית") == "ü é 漢字 한국어 עברית"


def test_lines_and_tabs_stay_where_they_are_meant() -> None:
    assert printable("one\n\ttwo\r\x1b", keep=LINES) == "one\n\\ttwo\\r\\x1b"
    assert printable("one\n\ttwo\r\x1b", keep=TEXT) == "one\n\ttwo\\r\\x1b"


@given(TEXTS)
def test_nothing_else_changes_and_a_second_time_changes_nothing(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    if is_visible(text):
        assert printable(text) == text


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_json_and_yaml_are_the_same_values_in_characters_that_are_shown(value: object) -> None:
    for encoded in (output.as_json(value), printable_json(json.dumps(value, ensure_ascii=False).encode()).decode()):
        assert json.loads(encoded) == value
        assert encoded.replace("\n", "").isprintable()
    encoded = output.as_yaml([value])
    assert yaml.safe_load(encoded) == value
    assert encoded.replace("\n", "").isprintable()


def assert_shown(capsys: pytest.CaptureFixture[str]) -> Any:
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert text.endswith("\n")
        assert text.replace("\n", "").isprintable(), text
    return shown


@pytest.fixture(params=HOSTILE, ids=ascii)
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_lines_of_the_plugin_hold_nothing_but_their_own_colours(
    hostile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rendered([hostile, Word(hostile, RED)], colors=False) == printable(hostile * 2)
    assert rendered([Word(hostile, RED)], colors=True) == f"\033[31m{printable(hostile)}\033[0m"
    (first, second) = table([[hostile, "x"], ["", "x"]])
    assert rendered(first, colors=False).index("x", len(printable(hostile))) == rendered(second, colors=False).index(
        "x"
    )
    output.show([[hostile]])
    for say in (output.begin, output.waiting, output.done, output.warn):
        say(hostile)
    output.failed(hostile, hostile)
    output.crashed("kubectl-mr", ValueError(hostile))
    shown = assert_shown(capsys)
    assert all(line[:2] in {"► ", "◎ ", "✔ ", "⚠ ", "✗ ", "  "} for line in shown.err.splitlines())


def test_the_demo(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.heading(hostile)
    screen.table([[hostile, hostile], ["a", "b"]])
    with screen.step(hostile, timed=False):
        pass
    assert_shown(capsys)


def test_what_a_program_reports_when_it_cannot_start(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    Exit(1, stdout=hostile, stderr=hostile).show()
    assert_shown(capsys)


def test_the_status_page(hostile: str) -> None:
    shown = environment.from_string("{{ it }}").render(it=hostile)
    assert shown.replace("\n", "").replace("\t", "").isprintable()


ROOT = Path(__file__).parents[3]
PACKAGES = (
    "components",
    "agent",
    "benchmarks",
    "config",
    "devcluster",
    "gardenapi",
    "kube",
    "kubectl",
    "localprocesses",
    "process",
    "webhooks",
    "image",
)
OWN_WORDS = {
    "benchmarks/bare.py",  # numbers
    "agent/gardenlet/common/charts/confined.py",  # why helm was not started, to the user who starts it
    "localprocesses/assets.py",  # how far it is
    "localprocesses/go_program.py",  # the same
    "localprocesses/local.py",  # what is waited for
    "localprocesses/state.py",  # that another command is at work
    "devcluster/setup.py",  # the name of a Seed
    "kubectl/completion.py",  # for a shell
}
ESCAPES = re.compile(r"from kube\.visible_text import .*\bprintable\b")
WRITES = re.compile(r"\bprint\(|sys\.std(out|err)(\.buffer)?\.write\(")


def test_all_modules_that_print_escape_or_report_nothing_but_words_of_their_own() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    writing = {str(file.relative_to(ROOT)) for file in files if WRITES.search(file.read_text())}
    escaping = {name for name in writing if ESCAPES.search((ROOT / name).read_text())}
    assert writing - escaping == OWN_WORDS
    assert {name for name in writing if name.startswith("kubectl/")} - OWN_WORDS == {"kubectl/output.py"}
