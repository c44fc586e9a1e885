"""ControllerRegistrations, -Deployments and -Installations, ExposureClasses, ShootStates and presets."""

from typing import Any

import pytest

from gardener.api import garden as resources
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.controller_deployment import CONTROLLER_DEPLOYMENT
from webhooks.garden.kinds.controller_installation import CONTROLLER_INSTALLATION
from webhooks.garden.kinds.controller_registration import CONTROLLER_REGISTRATION
from webhooks.garden.kinds.exposure_class import EXPOSURE_CLASS
from webhooks.garden.kinds.oidc_presets import CLUSTER_PRESET, PRESET
from webhooks.garden.kinds.shoot_state import SHOOT_STATE

NETWORK = {"kind": "Network", "type": "calico"}
DELETING = {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}


def registration(*given: Object, name: str = "x", **deployment: Any) -> Object:
    spec: Object = {"resources": list(given), **({"deployment": deployment} if deployment else {})}
    return {"metadata": {"name": name}, "spec": spec}


def registered(*given: Object) -> Object:
    of = resources.CONTROLLER_REGISTRATIONS
    return {**of.type_meta, **registration(*given, name="other")}


def test_extensions_get_defaults_and_other_kinds_do_not() -> None:
    created = Asked(CONTROLLER_REGISTRATION).create(registration({"kind": "Extension", "type": "a"}, NETWORK))
    assert created.spec["resources"] == [
        {
            "kind": "Extension",
            "type": "a",
            "primary": True,
            "globallyEnabled": False,
            "reconcileTimeout": "3m0s",
            "lifecycle": {
                "reconcile": "AfterKubeAPIServer",
                "delete": "BeforeKubeAPIServer",
                "migrate": "BeforeKubeAPIServer",
            },
        },
        {**NETWORK, "primary": True},
    ]


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (registration(NETWORK, NETWORK), {"spec.resources[1]"}),
        (registration({**NETWORK, "reconcileTimeout": "1m"}), {"spec.resources[0].reconcileTimeout"}),
        (
            registration({**NETWORK, "globallyEnabled": True, "lifecycle": {}}),
            {"spec.resources[0].globallyEnabled", "spec.resources[0].lifecycle"},
        ),
        (registration(NETWORK, seedSelector={"matchLabels": {"a": "b"}}), {"spec.deployment.seedSelector"}),
        (
            registration(
                {**NETWORK, "primary": False},
                seedSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]},
            ),
            {"spec.deployment.seedSelector.matchExpressions[0].operator"},
        ),
    ],
)
def test_what_a_registration_may_not_state(obj: Object, fields: set[str]) -> None:
    assert Asked(CONTROLLER_REGISTRATION).create(obj).fields == fields


def test_two_registrations_are_not_primary_for_the_same() -> None:
    several = registered({"kind": "Network", "type": "cilium"}, NETWORK)
    refused = Asked(CONTROLLER_REGISTRATION, garden=[several]).create(registration(NETWORK))
    assert refused.code == 403
    assert "controls resource Network/calico primarily" in refused.message
    secondary = registration({**NETWORK, "primary": False})
    assert Asked(CONTROLLER_REGISTRATION, garden=[several]).create(secondary).status is None


def test_the_deployment_of_a_registration_exists() -> None:
    refused = Asked(CONTROLLER_REGISTRATION).create(registration(NETWORK, deploymentRefs=[{"name": "d"}]))
    assert refused.code == 403
    assert 'controllerdeployments.core.gardener.cloud "d" not found' in refused.message


def test_primary_is_immutable() -> None:
    old = registration({**NETWORK, "primary": True})
    new = registration({"kind": "Network", "type": "cilium"}, {**NETWORK, "primary": False})
    assert Asked(CONTROLLER_REGISTRATION).update(old, new).fields == {"spec.resources"}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (CONTROLLER_REGISTRATION, {"resources": []}, {"resources": [NETWORK]}),
        (
            CONTROLLER_INSTALLATION,
            {"registrationRef": {"name": "r"}, "seedRef": {"name": "s"}},
            {"registrationRef": {"name": "r"}, "seedRef": {"name": "s"}, "deploymentRef": {"name": "d"}},
        ),
    ],
)
def test_in_deletion_the_spec_stays_as_it_is(kind: Any, old: Object, new: Object) -> None:
    requested = Asked(kind)
    assert requested.update({"metadata": DELETING, "spec": old}, {"metadata": DELETING, "spec": new}).fields == {"spec"}
    done = {"metadata": {**DELETING, "finalizers": []}, "spec": old}
    assert requested.update({"metadata": DELETING, "spec": old}, done).status is None


OWN = {"annotations": {"migration.controllerdeployment.gardener.cloud/type": "own"}}
OCI = "helm.ociRepository"


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        ({"helm": {"rawChart": "aGVsbG8="}}, set()),
        ({"helm": {"ociRepository": {"ref": "a/b:c"}}}, set()),
        ({"helm": {"ociRepository": {"repository": "a/b", "tag": "1"}}}, set()),
        ({"helm": {"ociRepository": {"repository": "a/b", "digest": "sha256:00"}}}, set()),
        ({"metadata": OWN}, set()),
        ({}, {"helm"}),
        ({"metadata": OWN, "helm": {"rawChart": "aGVsbG8="}}, {"helm"}),
        ({"helm": {}}, {"helm"}),
        ({"helm": {"rawChart": "aGVsbG8=", "ociRepository": {"ref": "a/b:c"}}}, {"helm"}),
        ({"helm": {"ociRepository": {}}}, {OCI}),
        ({"helm": {"ociRepository": {"repository": "a/b"}}}, {OCI}),
        ({"helm": {"ociRepository": {"repository": "a/b", "digest": "abc"}}}, {f"{OCI}.digest"}),
        ({"helm": {"ociRepository": {"ref": "a/b:c", "tag": "1"}}}, {f"{OCI}.tag"}),
    ],
)
def test_a_deployment_is_a_chart_from_one_place_or_something_else(obj: Object, fields: set[str]) -> None:
    outcome = Asked(CONTROLLER_DEPLOYMENT).create({"metadata": {}, **obj})
    assert outcome.fields == fields, outcome.message


@pytest.mark.parametrize(
    ("scheduling", "fields"),
    [
        ({"seedSelector": {"matchLabels": {"a": "b"}}, "tolerations": [{"key": "x", "value": "1"}, {"key": "x"}]}, set()),
        ({"tolerations": [{"key": "x"}, {"key": "x", "value": "1"}]}, {"scheduling.tolerations[1]"}),
        ({"tolerations": [{"key": "x"}, {"key": "x"}]}, {"scheduling.tolerations[1]"}),
        ({"seedSelector": {"matchLabels": {"a": "b c"}}}, {"scheduling.seedSelector.matchLabels"}),
    ],
)  # fmt: skip
def test_scheduling_of_an_exposure_class(scheduling: Object, fields: set[str]) -> None:
    obj = {"metadata": {"name": "e"}, "handler": "h", "scheduling": scheduling}
    assert Asked(EXPOSURE_CLASS).create(obj).fields == fields


def test_the_deletion_of_a_shoot_state_is_confirmed() -> None:
    state: Object = {"metadata": {"name": "s"}, "spec": {}}
    assert Asked(SHOOT_STATE).delete(state).code == 403
    confirmed = {**state, "metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "1"}}}
    assert Asked(SHOOT_STATE).delete(confirmed).code == 200


@pytest.mark.parametrize("field", ["shootSelector", "projectSelector"])
def test_selectors_of_presets(field: str) -> None:
    kind = PRESET if field == "shootSelector" else CLUSTER_PRESET
    spec = {"server": {"issuerURL": "https://x", "clientID": "c"}, "weight": 1}
    assert Asked(kind).create({"metadata": {"name": "p"}, "spec": spec}).status is None
    wrong = {**spec, field: {"matchExpressions": [{"key": "a", "operator": "In"}]}}
    assert Asked(kind).create({"metadata": {"name": "p"}, "spec": wrong}).fields == {
        f"spec.{field}.matchExpressions[0].values"
    }


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"server": {"caBundle": "none"}}, {"spec.server.caBundle"}),
        ({"server": {"requiredClaims": {"": "a"}}}, {"spec.server.requiredClaims"}),
        ({"server": {"requiredClaims": {"a": ""}}}, {"spec.server.requiredClaims.a"}),
        ({"client": {"extraConfig": {"": "a"}}}, {"spec.client.extraConfig"}),
        ({"client": {"extraConfig": {"a": ""}}}, {"spec.client.extraConfig.a"}),
    ],
)
def test_nothing_in_a_preset_is_empty(spec: Object, fields: set[str]) -> None:
    server = {"issuerURL": "https://x", "clientID": "c", **spec.get("server", {})}
    obj = {"metadata": {"name": "p"}, "spec": {"weight": 1, **spec, "server": server}}
    for kind in (PRESET, CLUSTER_PRESET):
        assert Asked(kind).create(obj).fields == fields
