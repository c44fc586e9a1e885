"""Seeds: defaults, labels, networks, settings; what stays while Shoots use them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.networks import overlap_errors, parsed
from kit.garden_objects import shoot
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.seed import SEED

OPERATION = "gardener.cloud/operation"
RESOURCES = [
    {"kind": kind, "type": "local"}
    for kind in ("BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord", "Infrastructure")
]
REGISTRATION: Object = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "ControllerRegistration",
    "metadata": {"name": "local"},
    "spec": {"resources": RESOURCES},
}


def seed(**changes: Any) -> Object:
    """A path with `__` for each dot."""
    secret = {"name": "dns", "namespace": "garden"}
    spec: Object = {
        "provider": {"type": "local", "region": "r", "zones": ["a", "b"]},
        "networks": {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.30.0.0/16"},
        "dns": {"provider": {"type": "local", "secretRef": secret}},
        "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        parent = spec
        for name in parents:
            parent = parent.setdefault(name, {})
        parent[last] = value
    return {"metadata": {"name": "s"}, "spec": spec}


def requested(*garden: Object) -> Asked:
    return Asked(SEED, garden=[REGISTRATION, *garden])


def backup(provider: str = "local", **fields: Any) -> Object:
    return {"provider": provider, "secretRef": {"name": "backup", "namespace": "garden"}, **fields}


def stored(**changes: Any) -> Object:
    created = requested().create(seed(**changes))
    assert created.status is None, created.message
    return created.object


RESERVED = [{"resources": {"cpu": "2", "memory": "6Gi"}}]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, {"configs": RESERVED}),
        ({"enabled": True}, {"enabled": True, "configs": RESERVED}),
        ({"enabled": True, "configs": []}, {"enabled": True, "configs": RESERVED}),
        ({"enabled": False}, {"enabled": False}),
        ({"configs": [{"resources": {"cpu": "1"}}]}, {"configs": [{"resources": {"cpu": "1"}}]}),
    ],
)
def test_capacity_is_reserved_unless_that_is_turned_off(sent: Object | None, kept: Object) -> None:
    assert stored(settings__excessCapacityReservation=sent)["spec"]["settings"]["excessCapacityReservation"] == kept


def test_labels_state_which_extensions_a_seed_uses() -> None:
    suffix = "extensions.gardener.cloud/local"
    wanted = {f"provider.{suffix}": "true", f"dnsrecord.{suffix}": "true"}
    obj = seed(backup=backup())
    obj["metadata"]["labels"] = {"mine": "x", "provider.extensions.gardener.cloud/old": "true"}
    assert requested().create(obj).object["metadata"]["labels"] == {"mine": "x", **wanted}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"networks__pods": "10.0.0.0"}, {"spec.networks.pods"}),
        ({"networks__pods": "2001:db8::/48"}, {"spec.networks.pods"}),
        ({"networks__ipFamilies": ["IPv6"]}, {f"spec.networks.{name}" for name in ("pods", "services", "nodes")}),
        ({"networks__ipFamilies": ["IPv4", "IPv4"]}, {"spec.networks.ipFamilies[1]"}),
        ({"networks__services": "10.20.0.0/20"}, {"spec.networks.services"}),
        ({"networks__nodes": "192.168.123.0/24"}, {"spec.networks.nodes"}),
        ({"networks__shootDefaults": {"pods": "10.20.1.0/24"}}, {"spec.networks.shootDefaults.pods"}),
        ({"networks__blockCIDRs": ["10.0.0.0/8", "x"]}, {"spec.networks.blockCIDRs[1]"}),
        ({"backup": backup("other")}, {"spec.backup.region", "spec.backup.provider"}),
        ({"dns": {}}, {"spec.dns.provider"}),
        ({"taints": [{"key": "a"}, {"key": "a", "value": "b"}, {"key": "a"}]}, {"spec.taints[2]"}),
        (
            {"settings__loadBalancerServices__zones": [{"name": "x"}]},
            {"spec.settings.loadBalancerServices.zones[0].name"},
        ),
        (
            {"settings__loadBalancerServices__zones": [{"name": "a"}, {"name": "a"}]},
            {"spec.settings.loadBalancerServices.zones[1].name"},
        ),
        (
            {"provider__zones": ["a"], "settings__loadBalancerServices__zones": [{"name": "a"}]},
            {"spec.settings.loadBalancerServices.zones"},
        ),
        (
            {"provider__zones": ["a"], "settings__topologyAwareRouting": {"enabled": True}},
            {"spec.settings.topologyAwareRouting.enabled"},
        ),
        ({"ingress__domain": "a_b"}, {"spec.ingress.domain"}),
        (
            {"settings__loadBalancerServices__annotations": {"a b": ""}},
            {"spec.settings.loadBalancerServices.annotations"},
        ),
        (
            {"settings__loadBalancerServices__zones": [{"name": "a", "annotations": {"a b": ""}}]},
            {"spec.settings.loadBalancerServices.zones[0].annotations"},
        ),
        (
            {"settings__excessCapacityReservation": {"enabled": False, "configs": [{"resources": {}}]}},
            {"spec.settings.excessCapacityReservation.configs[0].resources"},
        ),
        (
            {"settings__excessCapacityReservation__configs": [{"resources": {}}]},
            {"spec.settings.excessCapacityReservation.configs[0].resources"},
        ),
        (
            {
                "settings__excessCapacityReservation__configs": [
                    {"resources": {"cpu": "1"}, "tolerations": [{"key": "a", "operator": "Often"}]}
                ]
            },
            {"spec.settings.excessCapacityReservation.configs[0].tolerations[0].operator"},
        ),
        (
            {"volume__providers": [{"name": "a", "purpose": "p"}, {"name": "b", "purpose": "p"}]},
            {"spec.volume.providers[1].purpose"},
        ),
        ({"networks__pods": "x", "dns": {}}, {"spec.networks.pods", "spec.dns.provider"}),
    ],
)
def test_what_is_wrong_is_reported_all_at_once(changes: Object, fields: set[str]) -> None:
    registered = {**REGISTRATION, "spec": {"resources": [*RESOURCES, {"kind": "BackupBucket", "type": "other"}]}}
    refused = Asked(SEED, garden=[registered]).create(seed(**changes))
    assert (refused.code, refused.fields) == (422, fields), refused.message


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"provider__type": "nope"}, ["provider type"]),
        ({"dns__provider__type": "nope"}, ["DNS provider type"]),
        ({"backup": backup("nope", region="r")}, ["backup bucket type", "backup entry type"]),
        ({"provider__type": "nope", "dns__provider__type": "nope"}, ["provider type", "DNS provider type"]),
    ],
)
def test_extensions_must_be_registered(changes: Object, kinds: list[str]) -> None:
    refused = requested().create(seed(**changes))
    assert refused.code == 403
    assert [f"given Seed uses non-registered {kind}: " in refused.message for kind in kinds] == [True] * len(kinds)


def test_an_update_is_not_refused_because_an_extension_has_gone() -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["taints"] = [{"key": "a"}]
    assert Asked(SEED).update(old, new).status is None
    new["spec"]["backup"] = backup()
    assert Asked(SEED).update(old, new).code == 403


@pytest.mark.parametrize("used_by", [{"seedName": "s"}, {"status": {"seedName": "s"}}])
def test_a_seed_with_shoots_keeps_its_zones_and_is_not_deleted(used_by: Object) -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["provider"]["zones"] = ["b", "c"]
    refused = requested(shoot(**used_by)).update(old, new)
    assert "cannot remove zones [a] from Seed s as there are Shoots scheduled to this Seed" in refused.message
    assert requested().update(old, new).status is None
    refused = requested(shoot(**used_by)).delete(old)
    assert (refused.code, "cannot delete seed s since it is still used by shoot(s)" in refused.message) == (403, True)
    assert requested(shoot(seedName="other")).delete(old).status is None


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        ("reconcile", False),
        ("renew-kubeconfig", True),
        ("renew-garden-access-secrets", True),
        ("renew-workload-identity-tokens", True),
    ],
)
def test_operations_ask_for_work_once(operation: str, *, kept: bool) -> None:
    old = stored()
    new = {**old, "metadata": {"name": "s", "annotations": {OPERATION: operation}}}
    changed = requested().update(old, new)
    assert changed.object["operation"] == {"sequence": 1}
    assert (OPERATION in changed.object["metadata"].get("annotations", {})) is kept


def test_an_operation_is_one_of_a_few_and_not_replaced_by_another() -> None:
    old = stored()
    unknown = {**old, "metadata": {"name": "s", "annotations": {OPERATION: "explode"}}}
    assert requested().update(old, unknown).fields == {f"metadata.annotations[{OPERATION}]"}
    busy = {**old, "metadata": {"name": "s", "annotations": {OPERATION: "renew-kubeconfig"}}}
    other = {**old, "metadata": {"name": "s", "annotations": {OPERATION: "renew-garden-access-secrets"}}}
    refused = requested().update(busy, other)
    assert 'must not overwrite operation "renew-kubeconfig" with "renew-garden-access-secrets"' in refused.message


networks = st.builds(
    lambda version, address, prefix: (
        f"{'10.' if version == 4 else 'fd00::'}{address}{'.0.0' if version == 4 else ''}/{prefix}"
    ),
    st.sampled_from([4, 6]),
    st.integers(0, 9),
    st.integers(8, 30),
)


@given(st.lists(networks | st.sampled_from(["", "x", "10.0.0.0/33", "1.2.3.4"]), max_size=5))
def test_networks_overlap_as_sets_of_addresses_do(texts: list[str]) -> None:
    by_path = {str(index): text for index, text in enumerate(texts)}
    found = {error.path for error in overlap_errors(by_path)}
    known = parsed(by_path)
    wrong = {
        later
        for later, one in known.items()
        for earlier, other in known.items()
        if int(earlier) < int(later)
        and one.version == other.version
        and int(one[0]) <= int(other[-1])
        and int(other[0]) <= int(one[-1])
    }
    assert found == wrong
