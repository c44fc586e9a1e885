"""What is derived from the objects of a component of a Shoot."""

import re
from typing import Any

import pytest

from components.component import Component
from components.control_plane import Running
from components.registry import COMPONENTS, images_of_workers
from components.results import only
from components.sample import needs
from config.gardenlet.schema import SHOOT_COMPONENTS
from kit.shoot_inputs import inputs, shoot_with

VARIANTS: list[dict[str, Any]] = [
    {},
    {"shoot": shoot_with(tolerance="zone")},
    {"running": Running.ASLEEP},
    {"omitted": SHOOT_COMPONENTS, "mutates_pods": False},
    {"autoscaled": False},
    {"shoot": shoot_with(verticalPodAutoscaler={"enabled": True})},
]


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda each: each.name)
def test_a_component_is_removed_with_all_kinds_that_it_ever_has(component: Component) -> None:
    kinds = [(each["apiVersion"], each["kind"]) for each in needs(component).kinds]
    assert kinds
    for known in VARIANTS:
        found = component.made(inputs(**known, live=dict.fromkeys(component.reads, ())))
        assert {(each["apiVersion"], each["kind"]) for each in found} <= set(kinds)


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda each: each.name)
def test_networks_with_host_bits_are_written_without_them(component: Component) -> None:
    """Recent API servers reject them."""
    shoot = shoot_with()
    shoot["spec"]["networking"] = {"pods": "172.16.5.0/18", "services": "172.20.5.0/18", "nodes": "172.24.5.0/18"}
    found = str(component.made(inputs(shoot, live=dict.fromkeys(component.reads, ()))))
    assert not re.search(r"172\.\d+\.5\.0/18", found)


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda each: each.name)
def test_a_component_declares_the_results_that_it_reads(component: Component) -> None:
    """So that its tasks come after those that provide them."""
    assert set(component.results) == needs(component).results
    for known in VARIANTS:
        with only(component.results):
            component.made(inputs(**known, live=dict.fromkeys(component.reads, ())))


def test_names_and_tasks_of_components_are_their_own() -> None:
    for names in ([each.name for each in COMPONENTS], [each.id for each in COMPONENTS]):
        assert len(set(names)) == len(names)


def test_what_the_configuration_may_omit_are_components_of_workers() -> None:
    assert set(SHOOT_COMPONENTS) <= {each.name for each in COMPONENTS if each.is_of_workers}


@pytest.mark.parametrize("component", [each for each in COMPONENTS if each.is_of_workers], ids=lambda each: each.name)
def test_a_component_with_a_bundle_of_an_authority_reports_so(component: Component) -> None:
    """What all Shoots have is deployed again by the completion of a rotation itself."""
    assert component.has_bundles == needs(component).has_bundles


def test_images_are_those_that_containers_have() -> None:
    assert images_of_workers() == (
        *("apiserver-proxy", "cluster-autoscaler", "coredns", "envoy", "gardener-node-agent", "hyperkube"),
        *("machine-controller-manager", "metrics-server", "node-problem-detector", "pause", "vpn-seed-server"),
        "vpn-shoot-client",
    )
