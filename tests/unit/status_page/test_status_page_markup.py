"""Text never becomes markup, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.status_page.markup import Markup, element, joined, text


@pytest.mark.parametrize(
    ("value", "html"),
    [
        ("plain", "plain"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\"quoted\" 'twice'", "&quot;quoted&quot; &#x27;twice&#x27;"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("nothing\x00 bell\x07 escape\x1b", "nothing� bell� escape�"),
        ("file\u202egnp.exe", "file�gnp.exe"),
        (7, "7"),
        (None, ""),
        (Markup("<b>"), "<b>"),
    ],
)
def test_what_is_not_markup_is_escaped(value: str | int | None, html: str) -> None:
    assert text(value) == html


def test_elements_take_children_and_attributes() -> None:
    assert element("a", "x<y", element("b", "z"), href="/?a=1&b=2", class_="c", aria_label='"') == (
        '<a href="/?a=1&amp;b=2" class="c" aria-label="&quot;">x&lt;y<b>z</b></a>'
    )
    assert (
        element("input", type="checkbox", checked=True, disabled=False, name=None) == '<input type="checkbox" checked>'
    )
    assert joined(None, "a", Markup("<br>"), 1) == "a<br>1"


@given(st.text())
def test_no_text_opens_an_element_or_leaves_an_attribute(value: str) -> None:
    html = element("p", value, title=value)
    assert html.count("<") == html.count(">") == 2
    assert html.count('"') == 2
