"""The table of routes: every webhook of the configuration has its paths, and what is disabled is not made."""

import json
from typing import Any

import pytest

from config.resource_manager import decode
from config.resource_manager.webhooks import Webhooks
from config.webhooks.schema import GardenWebhooksConfiguration
from kit.webhooks.mutating import NO_STATE
from process.configuration.fields import members
from webhooks.garden.engine import webhooks_of
from webhooks.garden.registry import KINDS
from webhooks.routes import Route, disabled, enabled, routes

PATHS = {
    "crdDeletionProtection": {"/webhooks/validate-crd-deletion"},
    "endpointSliceHints": {"/webhooks/endpoint-slice-hints"},
    "extensionValidation": {
        "/validate-druid-gardener-cloud-v1alpha1-etcd",
        *(
            f"/validate-extensions-gardener-cloud-v1alpha1-{kind}"
            for kind in (
                *("backupbucket", "backupentry", "bastion", "containerruntime", "controlplane", "dnsrecord"),
                *("extension", "infrastructure", "network", "operatingsystemconfig", "selfhostedshootexposure"),
                "worker",
            )
        ),
    },
    "highAvailabilityConfig": {"/webhooks/high-availability-config"},
    "kubernetesServiceHost": {"/webhooks/kubernetes-service-host"},
    "nodeAgentAuthorizer": {"/webhooks/auth/nodeagent"},
    "podKubeAPIServerLoadBalancing": {"/webhooks/pod-kube-apiserver-load-balancing"},
    "podSchedulerName": {"/webhooks/default-pod-scheduler-name"},
    "podTopologySpreadConstraints": {"/webhooks/pod-topology-spread-constraints"},
    "projectedTokenMount": {"/webhooks/mount-projected-service-account-token"},
    "seccompProfile": {"/webhooks/seccomp-profile"},
    "systemComponentsConfig": {"/webhooks/system-components-config"},
    "tokenInvalidator": {"/webhooks/invalidate-service-account-token-secret"},
    "vpaInPlaceUpdates": {"/webhooks/vpa-in-place-updates"},
}
SEEDS = ("/authorize/seed", "/webhooks/garden/seed-restriction")
GARDEN = {"/webhooks/garden/convert", *SEEDS, *(webhook.path for kind in KINDS for webhook in webhooks_of(kind))}
COMBINED = {"/webhooks/pods", "/webhooks/pods/target"}


def table(*switched_on: str) -> list[Route]:
    needed: dict[str, Any] = {"kubernetesServiceHost": {"host": "api.example.com"}}
    webhooks = {name: {"enabled": True, **needed.get(name, {})} for name in switched_on}
    return routes(decode(json.dumps({"webhooks": webhooks})).config, NO_STATE)


def test_every_webhook_of_the_configuration_has_a_path() -> None:
    assert PATHS.keys() == {member.name for member in members(Webhooks)}


def test_nothing_is_enabled_by_itself() -> None:
    found = table()
    assert enabled(found) == {}
    assert {each.path for each in disabled(found)} == set().union(*PATHS.values()) | COMBINED


@pytest.mark.parametrize("webhook", PATHS)
def test_a_webhook_that_is_enabled_is_served_and_no_other(webhook: str) -> None:
    found = table(webhook)
    served = enabled(found).keys()
    assert served - COMBINED == PATHS[webhook]
    settings = {each.path: each.setting for each in disabled(table())}
    assert {settings[path] for path in PATHS[webhook]} == {f"webhooks.{webhook}.enabled"}
    assert served.isdisjoint(each.path for each in disabled(found))


def test_all_may_be_enabled_at_once_and_have_paths_of_their_own() -> None:
    found = table(*PATHS)
    assert len(enabled(found)) == len(found)
    assert enabled(found).keys() == set().union(*PATHS.values()) | COMBINED


def test_a_garden_has_webhooks_of_its_own_and_all_of_them_are_served() -> None:
    found = routes(GardenWebhooksConfiguration(), NO_STATE)
    assert enabled(found).keys() == GARDEN
    assert not disabled(found)
    assert GARDEN.isdisjoint(route.path for route in table())
