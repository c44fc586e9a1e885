"""The reference in the documentation is what the schema reports."""

from pathlib import Path

import pytest

from components import table
from config.controller_manager.schema import ControllerManagerConfiguration
from config.gardenlet.schema import GardenletConfiguration
from config.local_provider.schema import LocalProviderConfiguration
from config.reference import BEGIN, END, inserted, reference
from config.resource_manager.schema import ResourceManagerConfiguration
from config.scheduler.schema import SchedulerConfiguration
from config.webhooks.schema import GardenWebhooksConfiguration

DEFAULTS = ResourceManagerConfiguration()
DOCUMENTS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("package", "document", "defaults", "like"),
    [
        ("resource_manager", "configuration.md", DEFAULTS, None),
        ("controller_manager", "controller-manager.md", ControllerManagerConfiguration(), DEFAULTS),
        ("gardenlet", "gardenlet-configuration.md", GardenletConfiguration(), DEFAULTS),
        ("local_provider", "local-provider.md", LocalProviderConfiguration(), DEFAULTS),
        ("scheduler", "scheduler.md", SchedulerConfiguration(), DEFAULTS),
        ("webhooks", "garden-admission.md", GardenWebhooksConfiguration(), DEFAULTS),
    ],
)
def test_the_documented_reference_is_the_schema(package: str, document: str, defaults: object, like: object) -> None:
    text = (DOCUMENTS / document).read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert inserted(text, defaults, like) == text, f"run: python -m config.reference {package} docs/{document}"


def test_inserting_keeps_what_stands_around_the_reference() -> None:
    assert inserted(f"a\n{BEGIN}\nold\n{END}\nb\n", DEFAULTS) == f"a\n{BEGIN}\n\n{reference(DEFAULTS)}\n\n{END}\nb\n"


def test_items_show_type_or_default_rules_and_other_names() -> None:
    text = reference(DEFAULTS)
    items = text.splitlines()
    assert (
        "- `cacheResyncPeriod` (`24h`): Time between two reconciliations of all cached objects. At least 10s." in items
    )
    assert (
        "- `tolerationSeconds` (integer): Duration of the toleration in seconds, only for `NoExecute`; unset: unlimited."
        in items
    )
    assert any(i.startswith("- `audiences` (list of strings, `[\"gardener\"]`): ") and i.endswith("Each: required.") for i in items)  # fmt: skip
    assert any(i.startswith("- `nodeSelector` (map of strings): ") for i in items), "empty by default"
    assert "Greater than or equal to 0 (even if disabled)." in text
    assert any(item.startswith("- `qps` (number, `100`*): ") for item in items)
    assert "Old name: `managedResources`; both are an error." in text


def test_neighbors_with_the_same_text_share_an_item() -> None:
    assert '- `acceptContentTypes`, `contentType` (`""`): Ignored; JSON is always used.\n' in reference(DEFAULTS)


def test_blocks_are_described_above_their_fields_and_are_none() -> None:
    text = reference(DEFAULTS)
    assert "### `server.healthProbes`\n\nHTTP server of `/healthz` and `/readyz`.\n\n- `bindAddress`" in text
    assert "- `healthProbes` " not in text
    assert "### `controllers.shoot`\n\nReconciles Shoots. Enabled by default.\n" in reference(GardenletConfiguration())
    assert "### `server`\n\nServers of the programs.\n\n### `server.webhooks`\n" in text
    assert "### `webhooks.seccompProfile`\n\nSets the seccomp profile `RuntimeDefault`. Opt-in.\n\n###" in text
    assert "- `enabled` (`false`): Send [spans](tracing.md) to a collector.\n" in text, "reports more than its block"
    assert "- `podTolerations` (list of objects): " in text


def test_blocks_with_the_same_fields_share_a_section() -> None:
    text = reference(DEFAULTS)
    titles = [line for line in text.splitlines() if line.startswith("### ")]
    assert "### `sourceClientConnection`, `targetClientConnection`" in titles
    assert (
        "- `targetClientConnection`: Connection to the cluster that receives the objects.\n\nFields:\n\n- `kube" in text
    )
    assert "### `controllers.networkPolicy.ingressControllerSelector`" in titles
    assert len(titles) == len(set(titles))


def test_fields_that_are_as_in_the_main_reference_are_not_explained_again() -> None:
    text = reference(SchedulerConfiguration(), DEFAULTS)
    further = "Further fields: [Configuration](configuration.md#sourceclientconnection-targetclientconnection)."
    assert f"### `clientConnection`\n\nConnection to the garden cluster. {further}\n\n- `qps` (number, `50`*): " in text
    assert "`kubeconfig`" not in text
    assert "### `tracing`\n\nOpenTelemetry traces. See [Configuration](configuration.md#tracing).\n\n###" in text
    further = "Further fields: [Configuration](configuration.md#top-level)."
    assert f"### Top level\n\n{further}\n\n- `featureGates` " in text, "though the whole is of another type"
    assert "`logLevel`" not in text


def test_the_documented_components_of_shoots_are_the_registered_ones() -> None:
    text = (DOCUMENTS / "gardenlet-shoots.md").read_text()
    assert table.inserted(text) == text, "run: python -m components.table docs/gardenlet-shoots.md"
