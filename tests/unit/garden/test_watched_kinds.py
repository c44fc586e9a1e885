"""What the webhooks of the garden read: each kind has a view, and the documentation names the permissions for it."""

import os
from pathlib import Path

import pytest

from gardener.api.garden import NAMESPACED_CLOUD_PROFILES
from webhooks.authorizers.seed.graph import VIEWS as GRAPH
from webhooks.garden.lookups import VIEWS, bare
from webhooks.garden.registry import KINDS

DOCUMENT = Path(__file__).parents[3] / "docs" / "garden-admission.md"
BEGIN = "<!-- watched: begin (written by `UPDATE_DOCS=1 pytest tests/unit/garden/test_watched_kinds.py`) -->"
END = "<!-- watched: end -->"


def test_every_kind_that_is_read_has_a_view() -> None:
    assert {of for kind in KINDS for of in kind.reads} <= VIEWS.keys()


def test_the_documentation_names_what_is_watched() -> None:
    groups: dict[str, list[str]] = {}
    for of in sorted(VIEWS | GRAPH, key=lambda of: (of.group, of.plural)):
        groups.setdefault(of.group or "core of Kubernetes", []).append(f"`{of.plural}`")
    table = "".join(f"| {group} | {', '.join(plurals)} |\n" for group, plurals in groups.items())
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = f"{before}{BEGIN}\n\n| Group | Watched |\n|---|---|\n{table}\n{END}{after}"
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(expected)
    assert DOCUMENT.read_text() == expected, "run this test with UPDATE_DOCS=1"


@pytest.mark.parametrize("role", ["default-domain", ""])
def test_nothing_of_a_secret_is_kept_but_its_name_and_its_domain(role: str) -> None:
    written = {"kubectl.kubernetes.io/last-applied-configuration": "key", "dns.gardener.cloud/domain": "d"}
    having = {"a": "b", "gardener.cloud/role": role}
    meta = {"name": "s", "namespace": "n", "labels": having, "annotations": written, "uid": "u"}
    domain = {"labels": {"gardener.cloud/role": role}, "annotations": {"dns.gardener.cloud/domain": "d"}}
    kept = {"metadata": {"name": "s", "namespace": "n", **(domain if role else {})}}
    assert bare({"metadata": meta, "data": {"k": "key"}}) == kept


def test_of_a_profile_of_a_project_nothing_is_kept_that_its_parent_has() -> None:
    spec = {"parent": {"kind": "CloudProfile", "name": "large"}}
    meta = {"name": "own", "namespace": "n"}
    profile = {"metadata": {**meta, "managedFields": []}, "spec": spec, "status": {"cloudProfileSpec": {"type": "x"}}}
    assert VIEWS[NAMESPACED_CLOUD_PROFILES].project(profile) == {"metadata": meta, "spec": spec}
