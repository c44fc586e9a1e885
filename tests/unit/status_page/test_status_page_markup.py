"""Text never becomes markup, whatever it holds."""

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from agent.gardenlet.flow.page import handler
from agent.resource_manager.status_page import rendering
from agent.resource_manager.status_page.rendering import environment
from process.pages.templates import STATIC

TEMPLATE = environment.from_string('<p title="{{ it }}">{{ it }}</p>')


@pytest.mark.parametrize(
    ("value", "html"),
    [
        ("plain", "plain"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\"quoted\" 'twice'", "&#34;quoted&#34; &#39;twice&#39;"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("nothing\x00 bell\x07 escape\x1b", r"nothing\x00 bell\x07 escape\x1b"),
        ("file\u202egnp.exe", r"file\u202egnp.exe"),
        (7, "7"),
        (None, ""),
        (Markup("<b>"), "<b>"),
    ],
)
def test_what_is_not_markup_is_escaped(value: str | int | None, html: str) -> None:
    assert environment.from_string("{{ it }}").render(it=value) == html


@given(st.text())
def test_no_text_opens_an_element_or_leaves_an_attribute(value: str) -> None:
    html = TEMPLATE.render(it=value)
    assert html.count("<") == html.count(">") == 2
    assert html.count('"') == 2


def test_what_is_not_there_is_an_error_of_the_template() -> None:
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nothing }}").render()


@pytest.mark.parametrize("module", [rendering, handler])
def test_no_template_takes_text_for_markup(module: ModuleType) -> None:
    files = list((Path(str(module.__file__)).parent / "templates").glob("*.html"))
    assert files
    for file in files:
        assert "safe" not in file.read_text()
        assert "autoescape" not in file.read_text()


def test_files_are_served_at_paths_that_change_with_them() -> None:
    assert [path.partition("-")[0] for path in STATIC] == ["/style", "/script", "/icon"]
    assert all(content for content, _ in STATIC.values())
