"""From values to text."""

import pytest

from kubectl.style import GREEN, Branch, Columns, Word, rendered, short_list, shortened, size, table, tree


def text(lines: object) -> list[str]:
    return [rendered(line, colors=False) for line in lines]  # type: ignore[attr-defined]


def test_columns_are_as_wide_as_their_widest_cell_and_the_last_is_free() -> None:
    lines = table([["a", "bb", "long text at the end"], ["aaaa", "b", ""]], header=["X", "Y", "Z"])
    assert text(lines) == ["X      Y    Z", "a      bb   long text at the end", "aaaa   b"]


def test_a_table_without_rows_has_its_header_or_nothing() -> None:
    assert text(table([], header=["X"])) == ["X"]
    assert table([]) == []


def test_colors_do_not_count_as_width() -> None:
    [first, _] = table([[Word("ok", GREEN), "x"], ["longer", "x"]])
    assert rendered(first, colors=True) == "\033[32mok\033[0m       x"
    assert rendered(first, colors=False) == "ok       x"


def test_a_tree_is_drawn_with_lines() -> None:
    leaf = Branch(["leaf"], {})
    root = Branch(["root"], {}, [Branch(["one"], {}, [leaf, leaf]), Branch(["two"], {}, [leaf])])
    assert text(tree(root)) == ["root", "├── one", "│   ├── leaf", "│   └── leaf", "└── two", "    └── leaf"]


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_sizes_have_units(count: int, shown: str) -> None:
    assert size(count) == shown


def test_a_table_that_goes_on_keeps_its_columns_or_widens_them() -> None:
    columns = Columns()
    assert text(columns.lines([["NAME", "X"], ["first", "Pending"]])) == ["NAME    X", "first   Pending"]
    assert text(columns.lines([["a", "Ready"]])) == ["a       Ready"]
    assert text(columns.lines([["longer-one", "Ready"]])) == ["longer-one   Ready"]
    assert text(columns.lines([["a", "Ready"]])) == ["a            Ready"]


def test_long_texts_keep_begin_and_end_and_lists_are_cut() -> None:
    assert (shortened("abcdefghij", 10), shortened("abcdefghij", 6)) == ("abcdefghij", "ab…hij")
    assert short_list(["a", "b", "c"], 2) == "a, b and 1 more"
