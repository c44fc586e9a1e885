"""The reference in the documentation is what the schema says."""

from pathlib import Path

from config.load import decode
from config.reference import BEGIN, END, inserted, reference
from config.validation import check

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_documented_reference_is_the_schema() -> None:
    text = DOCUMENT.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert inserted(text) == text, "run: python -m config.reference docs/configuration.md"


def test_inserting_keeps_what_stands_around_the_reference() -> None:
    assert inserted(f"a\n{BEGIN}\nold\n{END}\nb\n") == f"a\n{BEGIN}\n\n{reference()}\n\n{END}\nb\n"


def test_rows_show_type_default_rules_and_other_names() -> None:
    rows = reference().splitlines()
    assert "| `cacheResyncPeriod` | duration | `24h` | must be at least 10s | How often caches deliver all objects again. |" in rows  # fmt: skip
    assert "| `tolerationSeconds` | integer | unset |  | How long, only for `NoExecute`; unset: for ever. |" in rows
    assert any(r.startswith("| `audiences` | list of strings | `[\"gardener\"]` | each: required |") for r in rows)  # fmt: skip
    assert any("must be greater than or equal to 0 (even if disabled)" in row for row in rows)
    assert any(row.startswith("| `qps` | number | `100` |") and row.endswith("`0` counts as unset. |") for row in rows)
    assert any("Also accepted as `managedResources`, with a warning; both together are an error." in r for r in rows)


def test_blocks_with_the_same_fields_share_a_table() -> None:
    titles = [line for line in reference().splitlines() if line.startswith("### ")]
    assert "### `sourceClientConnection`, `targetClientConnection`" in titles
    assert "### `controllers.networkPolicy.ingressControllerSelector`" in titles
    assert len(titles) == len(set(titles))


def test_the_example_of_the_documentation_is_valid() -> None:
    example = DOCUMENT.read_text().split("```yaml\n")[1].split("```")[0]
    decoded = decode(example)
    check(decoded.config, conflicts=decoded.conflicts)
    assert decoded.warnings == ()
    assert decoded.config.webhooks.projected_token_mount.enabled
