"""Several components: which one a file is for, and what is its own of the blocks that all have."""

from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Never

import pytest

from config.reference import reference
from config.resource_manager import COMPONENT
from process.configuration.blocks import ClientConnection, HTTPServer, LeaderElection
from process.configuration.component import Component, load
from process.configuration.decode import Decoder
from process.configuration.errors import ConfigError
from process.configuration.fields import is_block, join, members, setting
from process.configuration.overrides import Overrides


def _not_to_be_imported() -> Never:
    raise AssertionError("imported")


OTHER = replace(COMPONENT, api_version="other.example.com/v1", kind="OtherConfiguration")
UNUSED = replace(COMPONENT, kind="UnusedConfiguration", configuration=_not_to_be_imported)
ALL = (COMPONENT, OTHER, UNUSED)


def component_of(tmp_path: Path, head: str) -> Component[Any]:
    path = tmp_path / "config.yaml"
    path.write_text(f"{head}\nleaderElection: {{resourceNamespace: garden}}\n")
    return load(path, ALL, overrides=Overrides(), environment={})[0]


@pytest.mark.parametrize("component", [COMPONENT, OTHER])
def test_the_kind_reports_which_one_and_no_other_is_imported(component: Component[Any], tmp_path: Path) -> None:
    head = f"apiVersion: {component.api_version}\nkind: {component.kind}"
    assert component_of(tmp_path, head) is component


def test_without_a_kind_it_is_the_first(tmp_path: Path) -> None:
    assert component_of(tmp_path, "") is COMPONENT


def test_an_unknown_kind_is_answered_by_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        component_of(tmp_path, "apiVersion: other.example.com/v1\nkind: Strange")
    assert str(caught.value) == (
        "error decoding config: expected apiVersion resourcemanager.config.gardener.cloud/v1alpha1 and kind "
        "ResourceManagerConfiguration or apiVersion other.example.com/v1 and kind OtherConfiguration or apiVersion "
        "resourcemanager.config.gardener.cloud/v1alpha1 and kind UnusedConfiguration, found other.example.com/v1 and "
        "Strange"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A configuration with defaults of its own in blocks that all have."""

    connection: Annotated[ClientConnection, setting("Connection.")] = field(
        default_factory=partial(ClientConnection, qps=50.0)
    )
    election: Annotated[LeaderElection, setting("Election.")] = field(
        default_factory=partial(LeaderElection, resource_name="own", resource_namespace="garden")
    )
    metrics: Annotated[HTTPServer, setting("Metrics.")] = field(default_factory=partial(HTTPServer, port=2719))


def test_a_block_that_is_set_in_part_keeps_the_other_defaults_of_its_component() -> None:
    document = {"connection": {"qps": 0, "burst": 1}, "election": {"resourceName": ""}, "metrics": {"port": None}}
    assert Decoder().block(Own(), document) == Own(connection=ClientConnection(qps=50.0, burst=1))


def test_the_reference_has_the_defaults_of_the_component() -> None:
    text = reference(Own())
    assert "- `qps` (number, `50`*): " in text
    assert '- `resourceName` (`"own"`*): ' in text
    assert "- `port` (`2719`*): " in text


@pytest.mark.parametrize("program", ["resource_manager", "controller_manager", "scheduler", "webhooks"])
def test_messages_name_the_timeout_of_caches_as_the_programs_own_file_does(program: str) -> None:
    configuration = import_module(f"config.{program}").COMPONENT.configuration()
    found = {
        join(path, name)
        for path, block in [("", configuration), *((each.name, each.kind) for each in members(configuration))]
        for name in (each.name for each in (members(block) if is_block(block) else []))
        if name == "cacheSyncTimeout"
    }
    assert found == {configuration.cache_sync_timeout_path}
