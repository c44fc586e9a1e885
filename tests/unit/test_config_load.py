"""From a file to a valid configuration: what goes wrong, in which words."""

from pathlib import Path

import pytest

from config.resource_manager import load
from process.configuration.errors import ConfigError
from process.configuration.overrides import Overrides


def load_error(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, environment={})
    return str(caught.value)


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "config.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_file_is_read_overridden_and_validated(tmp_path: Path) -> None:
    path = write(tmp_path, "leaderElection: {resourceNamespace: garden}\ncontrollers: {managedResources: {}}\nfoo: 1\n")
    loaded = load(path, overrides=Overrides(metrics_bind_address=":1"), environment={"KUBECONFIG": "/k"})
    assert loaded.config.leader_election.resource_namespace == "garden"
    assert loaded.config.source_client_connection.kubeconfig == "/k"
    assert loaded.config.server.metrics.port == 1
    assert loaded.warnings == (
        "controllers.managedResources: used as controllers.managedResource; rename it",
        "foo: unknown field, ignored",
    )


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        (
            "leaderElection: {resourceNamespce: garden}",
            [
                "leaderElection.resourceNamespace: Required value",
                "leaderElection.resourceNamespce: unknown field, ignored; did you mean leaderElection.resourceNamespace?",
            ],
        ),
        ("logLevel: 1\nfoo: 2", ["logLevel: expected a string, found the number 1", "foo: unknown field, ignored"]),
        (
            "apiVersio: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration",
            ["apiVersio: unknown field, ignored; did you mean apiVersion?"],
        ),
    ],
)
def test_a_field_that_is_misspelt_is_reported_with_what_is_wrong(text: str, errors: list[str], tmp_path: Path) -> None:
    found = load_error(write(tmp_path, text))
    assert all(error in found for error in errors), found


def test_an_unreadable_file_is_named_with_the_reason(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert load_error(missing) == f"error reading config file: open {missing}: no such file or directory"
    assert load_error(tmp_path) == f"error reading config file: open {tmp_path}: is a directory"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"#" * (1 << 20))
    assert load_error(path) == "leaderElection.resourceNamespace: Required value"
    path = write(tmp_path, b"#" * ((1 << 20) + 1))
    assert load_error(path) == f"error reading config file: {path} is larger than 1048576 bytes"


def test_a_document_that_cannot_be_decoded_is_reported_to_be_so(tmp_path: Path) -> None:
    found = load_error(write(tmp_path, "logLevel: 1"))
    assert found == "error decoding config: logLevel: expected a string, found the number 1"


def test_one_error_stands_alone_and_several_stand_in_brackets() -> None:
    assert str(ConfigError(["a"])) == "a"
    assert str(ConfigError(["a", "b", "a"])) == "[a, b]"
    assert str(ConfigError(["a", "a"])) == "a"
    assert str(ConfigError(["a", "b"], stage="s")) == "s: [a, b]"


def test_conflicting_names_and_broken_rules_are_reported_together(tmp_path: Path) -> None:
    found = load_error(write(tmp_path, "controllers: {managedResource: {syncPeriod: 1s}, managedResources: {}}"))
    assert found == (
        "[controllers.managedResources: Forbidden: must not be given together with controllers.managedResource, "
        "leaderElection.resourceNamespace: Required value, "
        "controllers.managedResources.syncPeriod: Invalid value: 1s: must be at least 15s]"
    )
