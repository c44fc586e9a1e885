"""What the webhooks of the garden read: each kind has a view, and the documentation names the permissions for it."""

import os
from pathlib import Path

from webhooks.garden.kinds import KINDS
from webhooks.garden.lookups import VIEWS, bare

DOCUMENT = Path(__file__).parents[3] / "docs" / "garden-admission.md"
BEGIN = "<!-- watched: begin (written by `UPDATE_DOCS=1 pytest tests/unit/garden/test_watched_kinds.py`) -->"
END = "<!-- watched: end -->"


def test_every_kind_that_is_read_has_a_view() -> None:
    assert {of for kind in KINDS for of in kind.reads} <= VIEWS.keys()


def test_the_documentation_names_what_is_watched() -> None:
    groups: dict[str, list[str]] = {}
    for of in sorted(VIEWS, key=lambda of: (of.group, of.plural)):
        groups.setdefault(of.group or "core of Kubernetes", []).append(f"`{of.plural}`")
    table = "".join(f"| {group} | {', '.join(plurals)} |\n" for group, plurals in groups.items())
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = f"{before}{BEGIN}\n\n| Group | Watched |\n|---|---|\n{table}\n{END}{after}"
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(expected)
    assert DOCUMENT.read_text() == expected, "run this test with UPDATE_DOCS=1"


def test_nothing_of_a_secret_is_kept_but_its_name_labels_and_annotations_of_ours() -> None:
    written = {"kubectl.kubernetes.io/last-applied-configuration": "key", "dns.gardener.cloud/domain": "d"}
    meta = {"name": "s", "namespace": "n", "labels": {"a": "b"}, "annotations": written, "uid": "u"}
    kept = {"name": "s", "namespace": "n", "labels": {"a": "b"}, "annotations": {"dns.gardener.cloud/domain": "d"}}
    assert bare({"metadata": meta, "data": {"k": "key"}}) == {"metadata": kept}
