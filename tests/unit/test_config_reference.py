"""The reference in the documentation is what the schema says."""

from pathlib import Path

import pytest

from config.controller_manager.schema import ControllerManagerConfiguration
from config.reference import BEGIN, END, inserted, reference
from config.resource_manager.schema import ResourceManagerConfiguration
from config.scheduler.schema import SchedulerConfiguration

DEFAULTS = ResourceManagerConfiguration()
DOCUMENTS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("package", "document", "defaults"),
    [
        ("resource_manager", "configuration.md", DEFAULTS),
        ("controller_manager", "controller-manager.md", ControllerManagerConfiguration()),
        ("scheduler", "scheduler.md", SchedulerConfiguration()),
    ],
)
def test_the_documented_reference_is_the_schema(package: str, document: str, defaults: object) -> None:
    text = (DOCUMENTS / document).read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert inserted(text, defaults) == text, f"run: python -m config.reference {package} docs/{document}"


def test_inserting_keeps_what_stands_around_the_reference() -> None:
    assert inserted(f"a\n{BEGIN}\nold\n{END}\nb\n", DEFAULTS) == f"a\n{BEGIN}\n\n{reference(DEFAULTS)}\n\n{END}\nb\n"


def test_rows_show_type_default_rules_and_other_names() -> None:
    text = reference(DEFAULTS)
    rows = text.splitlines()
    assert "| `cacheResyncPeriod` | duration, `24h` | How often all cached objects are processed again. Must be at least 10s. |" in rows  # fmt: skip
    assert "| `tolerationSeconds` | integer | Seconds, only for `NoExecute`; unset: forever. |" in rows
    assert any(r.startswith("| `audiences` | list of strings, `[\"gardener\"]` |") and r.endswith("Each: required. |") for r in rows)  # fmt: skip
    assert "Must be greater than or equal to 0 (even if disabled)." in text
    assert any(row.startswith("| `qps` | number, `100`* |") for row in rows)
    assert "Old name: `managedResources`; both are an error." in text


def test_blocks_are_described_above_their_table_and_have_no_row() -> None:
    text = reference(DEFAULTS)
    assert "### `server.healthProbes`\n\nHTTP server of `/healthz` and `/readyz`.\n\n| Field |" in text
    assert "| `healthProbes` |" not in text
    assert "### `server`\n\nServers of the programs.\n\n### `server.webhooks`\n" in text
    assert (
        "### `webhooks.seccompProfile`\n\nSets the seccomp profile `RuntimeDefault`. Disabled by default.\n\n###"
        in text
    )
    assert "| `enabled` | boolean, `false` | Send [spans](tracing.md) to a collector. |" in text, (
        "says more than its block"
    )
    assert "| `podTolerations` | list of objects, `[]` |" in text


def test_blocks_with_the_same_fields_share_a_table() -> None:
    text = reference(DEFAULTS)
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert "### `sourceClientConnection`, `targetClientConnection`" in titles
    assert "- `targetClientConnection`: Connection to the cluster that receives the objects.\n" in text
    assert "### `controllers.networkPolicy.ingressControllerSelector`" in titles
    assert len(titles) == len(set(titles))
