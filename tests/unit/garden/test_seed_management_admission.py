"""Gardenlets, ManagedSeedSets and SeedAutoscalers."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.api import garden as resources
from gardener.api.garden import SEED_AUTOSCALERS
from gardener.api.structural import errors
from gardener.garden.managed_seed_sets import Reason
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.gardenlet import GARDENLET
from webhooks.garden.kinds.managed_seed import MANAGED_SEED
from webhooks.garden.kinds.managed_seed_set import MANAGED_SEED_SET
from webhooks.garden.kinds.seed_autoscaler import SEED_AUTOSCALER

OPERATION = "gardener.cloud/operation"
META = {"name": "s", "namespace": "garden"}
KIND = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
SEED: Object = {
    "provider": {"type": "local", "region": "r"},
    "networks": {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.30.0.0/16"},
    "dns": {"provider": {"type": "local", "secretRef": {"name": "dns", "namespace": "garden"}}},
    "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
}


# --- Gardenlets


def gardenlet(seed: Object | None = None, **config: Any) -> Object:
    of_seed = {"seedConfig": {"spec": SEED if seed is None else seed}}
    deployment = {"helm": {"ociRepository": {"ref": "a/b:1"}}}
    return {"metadata": META, "spec": {"config": {**KIND, **of_seed, **config}, "deployment": deployment}}


def test_a_gardenlet_gets_a_capacity_a_pull_policy_and_a_secret_for_backups() -> None:
    backup = {"provider": "local"}
    spec = Asked(GARDENLET).create(gardenlet({**SEED, "backup": backup})).spec
    assert spec["config"]["resources"] == {"capacity": {"shoots": "250"}}
    assert spec["deployment"]["image"] == {"pullPolicy": "IfNotPresent"}
    secret = {"name": "backup-s", "namespace": "garden"}
    assert spec["config"]["seedConfig"]["spec"] == {**SEED, "backup": {**backup, "secretRef": secret}}


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (gardenlet(seedConfig={"metadata": {"name": "s"}, "spec": SEED}), {"seedConfig.metadata.name"}),
        (gardenlet({**SEED, "provider": {"type": "local"}}), {"seedConfig.spec.provider.region"}),
        (gardenlet({**SEED, "dns": {}}), {"seedConfig.spec.dns.provider"}),
        (gardenlet({**SEED, "networks": {"pods": "x", "services": "10.1.0.0/16"}}), {"seedConfig.spec.networks.pods"}),
        (gardenlet(kind="Other"), {"kind"}),
        (
            gardenlet(resources={"capacity": {"shoots": "5"}, "reserved": {"shoots": "6"}}),
            {"resources.reserved.shoots"},
        ),
        (gardenlet(resources={"reserved": {"shoots": "6", "cpu": 1}}), {"resources.reserved.cpu"}),
        (
            gardenlet(seedConfig={"metadata": {"annotations": {"a b": ""}}, "spec": SEED}),
            {"seedConfig.metadata.annotations"},
        ),
        (gardenlet({}), {f"seedConfig.spec.{name}" for name in ("provider", "networks", "dns", "ingress")}),
    ],
)
def test_a_gardenlet_describes_a_whole_seed(obj: Object, fields: set[str]) -> None:
    refused = Asked(GARDENLET).create(obj)
    assert (refused.code, refused.fields) == (422, {f"spec.config.{field}" for field in fields}), refused.message


def test_the_deployment_of_a_gardenlet_must_be_accepted() -> None:
    obj = gardenlet()
    obj["spec"]["deployment"] |= {
        "serviceAccountName": "a_b",
        "podLabels": {"a": "b c"},
        "podAnnotations": {"a b": "c"},
    }
    expected = {f"spec.deployment.{field}" for field in ("serviceAccountName", "podLabels", "podAnnotations")}
    assert Asked(GARDENLET).create(obj).fields == expected
    obj["spec"]["deployment"] |= {"image": {"repository": "", "tag": ""}}
    assert Asked(GARDENLET).create(obj).fields >= {"spec.deployment.image.repository", "spec.deployment.image.tag"}


def test_a_gardenlet_is_in_the_garden_and_not_beside_a_managed_seed_of_that_name() -> None:
    elsewhere = {**gardenlet(), "metadata": {"name": "s", "namespace": "garden-dev"}}
    assert Asked(GARDENLET).create(elsewhere).fields == {"metadata.namespace"}
    resource = resources.MANAGED_SEEDS
    other = {**resource.type_meta, "metadata": META}
    refused = Asked(GARDENLET, garden=[other]).create(gardenlet())
    assert refused.code == 403
    assert "cannot create Gardenlet garden/s since there is already a ManagedSeed object" in refused.message
    stored = Asked(GARDENLET).create(gardenlet()).object
    changed = copy.deepcopy(stored)
    changed["spec"]["deployment"]["replicaCount"] = 1
    assert Asked(GARDENLET, garden=[other]).update(stored, changed).status is None


def test_what_identifies_the_seed_of_a_gardenlet_stays() -> None:
    stored = Asked(GARDENLET).create(gardenlet()).object
    changed = copy.deepcopy(stored)
    changed["spec"]["config"]["seedConfig"]["spec"]["networks"]["pods"] = "10.99.0.0/16"
    assert Asked(GARDENLET).update(stored, changed).fields == {"spec.config.seedConfig.spec.networks.pods"}


@pytest.mark.parametrize(("operation", "kept"), [("reconcile", False), ("renew-kubeconfig", True)])
def test_operations_of_gardenlets(operation: str, *, kept: bool) -> None:
    stored = Asked(GARDENLET).create(gardenlet()).object
    new = {**stored, "metadata": {**META, "annotations": {OPERATION: operation}}}
    changed = Asked(GARDENLET).update(stored, new)
    assert changed.object["operation"] == {"sequence": 1}
    assert (OPERATION in changed.object["metadata"].get("annotations", {})) is kept


# --- ManagedSeedSets

LABELS = {"labels": {"set": "s"}}


def managed_seed_set(seed: Object | None = None, **changes: Any) -> Object:
    """Changes: by path, with `__` for each dot; None removes."""
    worker = {"name": "w", "minimum": 1, "maximum": 2, "machine": {"type": "small"}}
    config = {**KIND, "seedConfig": {"metadata": LABELS, "spec": seed or {}}}
    shoot = {
        "region": "r",
        "cloudProfileName": "p",
        "secretBindingName": "sb",
        "kubernetes": {"version": "1.30.1"},
        "networking": {"type": "calico"},
        "provider": {"type": "local", "workers": [worker]},
    }
    spec: Object = {
        "selector": {"matchLabels": {"set": "s"}},
        "template": {"metadata": LABELS, "spec": {"gardenlet": {"config": config}}},
        "shootTemplate": {"metadata": LABELS, "spec": shoot},
    }
    spec = copy.deepcopy(spec)
    for path, value in changes.items():
        *parents, last = path.split("__")
        parent = spec
        for name in parents:
            parent = parent.setdefault(name, {})
        parent[last] = value
    return {"metadata": META, "spec": spec}


def without_gardenlet(seed: Object | None = None, *, metadata: Object = LABELS) -> Object:
    return managed_seed_set(template__spec={"seedTemplate": {"metadata": metadata, "spec": seed or {}}})


CONFIG = "template__spec__gardenlet__config"


def test_templates_stay_as_they_are_but_for_what_their_rules_need() -> None:
    sent = managed_seed_set({"ingress": {"domain": "a.b"}, "dns": SEED["dns"], "taints": [{"key": "a"}]})
    stored = Asked(MANAGED_SEED_SET).create(sent).spec
    expected = copy.deepcopy(sent["spec"])
    expected["template"]["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["ingress"]["controller"] = {
        "kind": "nginx"
    }
    expected["shootTemplate"]["spec"]["provider"]["workers"][0] |= {"maxSurge": 1, "maxUnavailable": 0}
    assert stored["template"] == expected["template"]
    assert stored["shootTemplate"] == expected["shootTemplate"]


def test_a_set_may_make_seeds_without_a_gardenlet() -> None:
    sent = without_gardenlet({"ingress": {"domain": "a.b"}, "taints": [{"key": "a"}]})
    expected = copy.deepcopy(sent["spec"]["template"])
    expected["spec"]["seedTemplate"]["spec"]["ingress"]["controller"] = {"kind": "nginx"}
    stored = Asked(MANAGED_SEED_SET).create(sent)
    assert (stored.status, stored.spec["template"]) == (None, expected)


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (without_gardenlet(metadata={}), {"metadata.labels"}),
        (without_gardenlet(metadata={**LABELS, "name": "s"}), {"metadata.name"}),
        (without_gardenlet({"networks": {"pods": "x"}}), {"spec.networks.pods"}),
        (without_gardenlet({"provider": {"type": "x", "zones": 5}}), {"spec.provider.zones"}),
    ],
)
def test_a_seed_without_a_gardenlet_must_be_accepted(obj: Object, fields: set[str]) -> None:
    refused = Asked(MANAGED_SEED_SET).create(obj)
    expected = {f"spec.template.spec.seedTemplate.{field}" for field in fields}
    assert (refused.code, refused.fields) == (422, expected), refused.message


NO_MATCH = {
    f"{path}.labels" for path in ("template.metadata", f"{CONFIG}.seedConfig.metadata", "shootTemplate.metadata")
}


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (managed_seed_set(selector={"matchLabels": {"x": "y"}}), NO_MATCH),
        (managed_seed_set(selector={"matchLabels": {"a b": "y"}}), {"selector.matchLabels"}),
        (managed_seed_set(shootTemplate__metadata={}), {"shootTemplate.metadata.labels"}),
        (managed_seed_set(**{CONFIG: KIND}), {f"{CONFIG}.seedConfig"}),
        (
            managed_seed_set(updateStrategy={"rollingUpdate": {"maxUnhealthyShoots": "101%"}}),
            {"updateStrategy.rollingUpdate.maxUnhealthyShoots"},
        ),
        (managed_seed_set(template__spec__gardenlet={}), {f"{CONFIG}.seedConfig"}),
        (
            managed_seed_set(shootTemplate__metadata={**LABELS, "annotations": {"a b": ""}}),
            {"shootTemplate.metadata.annotations"},
        ),
        (
            managed_seed_set(template__metadata={"labels": {**LABELS["labels"], "x": "a b"}}),
            {"template.metadata.labels"},
        ),
        (
            managed_seed_set(template__spec__gardenlet__deployment={"podLabels": {"a": "b c"}}),
            {"template.spec.gardenlet.deployment.podLabels"},
        ),
        (
            managed_seed_set({"ingress": {"controller": {"kind": "nginx"}}}),
            {f"{CONFIG}.seedConfig.spec.ingress.domain", f"{CONFIG}.seedConfig.spec.dns.provider"},
        ),
        (managed_seed_set({"networks": {"pods": "x"}}), {f"{CONFIG}.seedConfig.spec.networks.pods"}),
        (
            managed_seed_set(**{CONFIG: {**KIND, "kind": "Other", "seedConfig": {"metadata": LABELS}}}),
            {f"{CONFIG}.kind"},
        ),
        (
            managed_seed_set(**{f"{CONFIG}__gardenClientConnection": {"kubeconfig": "x"}}),
            {f"{CONFIG}.gardenClientConnection.kubeconfig"},
        ),
        (
            managed_seed_set(shootTemplate__spec__networking={"type": "calico", "pods": "x"}),
            {"shootTemplate.spec.networking.pods"},
        ),
        (
            managed_seed_set(
                shootTemplate__spec__maintenance__timeWindow={"begin": "010000+0000", "end": "011000+0000"}
            ),
            {"shootTemplate.spec.maintenance.timeWindow"},
        ),
        (
            managed_seed_set(shootTemplate__spec__kubernetes={"version": "newest"}),
            {"shootTemplate.spec.kubernetes.version"},
        ),
        (
            managed_seed_set(shootTemplate__spec__provider__workers=[], shootTemplate__spec__secretBindingName=None),
            {"shootTemplate.spec.provider.workers"},
        ),
    ],
)
def test_what_is_made_from_templates_must_be_accepted(obj: Object, fields: set[str]) -> None:
    refused = Asked(MANAGED_SEED_SET).create(obj)
    expected = {f"spec.{field}".replace("__", ".") for field in fields}
    assert (refused.code, refused.fields) == (422, expected), refused.message


@pytest.mark.parametrize(
    ("before", "changes", "fields"),
    [
        ({}, {"shootTemplate__spec__region": "other"}, {"shootTemplate.spec.region"}),
        ({}, {"shootTemplate__spec__kubernetes__version": "1.29.1"}, {"shootTemplate.spec.kubernetes.version"}),
        ({}, {"shootTemplate__spec__kubernetes__version": "1.31.0"}, set()),
        ({}, {"shootTemplate__spec__networking__nodes": "10.1.0.0/16"}, set()),
        (
            {"shootTemplate__spec__networking__nodes": "10.1.0.0/16"},
            {"shootTemplate__spec__networking__nodes": "10.2.0.0/16"},
            {"shootTemplate.spec.networking.nodes"},
        ),
        ({}, {f"{CONFIG}__seedConfig__spec__networks": {"pods": "10.1.0.0/16"}}, set()),
        (
            {f"{CONFIG}__seedConfig__spec__networks": {"pods": "10.1.0.0/16"}},
            {f"{CONFIG}__seedConfig__spec__networks": {"pods": "10.2.0.0/16"}},
            {f"{CONFIG}.seedConfig.spec.networks.pods"},
        ),
    ],
)
def test_templates_change_only_where_what_was_made_from_them_can(
    before: Object, changes: Object, fields: set[str]
) -> None:
    stored = Asked(MANAGED_SEED_SET).create(managed_seed_set(**before))
    assert stored.status is None, stored.message
    sent = {**stored.object, "spec": managed_seed_set(**{**before, **changes})["spec"]}
    changed = Asked(MANAGED_SEED_SET).update(stored.object, sent)
    assert changed.fields == {f"spec.{field}".replace("__", ".") for field in fields}, changed.message


def test_a_template_of_shoots_has_workers() -> None:
    refused = Asked(MANAGED_SEED_SET).create(
        managed_seed_set(shootTemplate__spec__provider__workers=[], shootTemplate__spec__secretBindingName=None)
    )
    assert "Invalid value: []: workers cannot be empty in the Shoot template for a ManagedSeedSet" in refused.message


def test_the_deployment_of_gardenlets_is_looked_at_in_templates_too() -> None:
    wrong = {"image": {"repository": ""}}
    refused = Asked(MANAGED_SEED_SET).create(managed_seed_set(template__spec__gardenlet__deployment=wrong))
    path = "deployment.image.repository"
    assert refused.fields == {f"spec.template.spec.gardenlet.{path}"}
    obj = gardenlet()
    obj["spec"]["deployment"] |= wrong
    assert Asked(GARDENLET).create(obj).fields == {f"spec.{path}"}


@pytest.mark.parametrize(
    ("name", "code", "warned"), [("a" * 11, 200, 0), ("a" * 12, 200, 1), ("a" * 13, 200, 1), ("a" * 14, 422, 0)]
)
def test_there_is_room_for_numbers_in_the_names_of_shoots(name: str, code: int, warned: int) -> None:
    project = {"metadata": {"name": "garden"}, "spec": {"namespace": "garden"}}
    garden = [{**resources.PROJECTS.type_meta, **project}]
    obj = {**managed_seed_set(), "metadata": {**META, "name": name}}
    created = Asked(MANAGED_SEED_SET, garden=garden).create(obj)
    assert (created.code, len(created.warnings)) == (code, warned), created.message
    assert created.fields == (set() if code == 200 else {"metadata.name"})


def test_what_a_replica_waits_for_is_one_of_a_few() -> None:
    def problems(reason: str) -> list[str]:
        pending = {"name": "s-0", "reason": reason, "since": "2026-01-01T00:00:00Z"}
        obj = {**managed_seed_set(), "status": {"pendingReplica": pending}}
        return [error.path for error in errors(MANAGED_SEED_SET.definition.schema, obj)]

    assert [each for each in problems("Waiting") if each != "<nil>"] == ["status.pendingReplica.reason"]
    for reason in Reason:
        assert [each for each in problems(reason.value) if each != "<nil>"] == []


def test_sets_are_in_the_garden() -> None:
    obj = {**managed_seed_set(), "metadata": {"name": "s", "namespace": "garden-dev"}}
    assert Asked(MANAGED_SEED_SET).create(obj).fields == {"metadata.namespace"}


def test_a_set_can_be_reconciled() -> None:
    stored = Asked(MANAGED_SEED_SET).create(managed_seed_set()).object
    new = {**stored, "metadata": {**META, "annotations": {OPERATION: "reconcile"}}}
    changed = Asked(MANAGED_SEED_SET).update(stored, new).object
    assert (changed["operation"], changed["metadata"].get("annotations")) == ({"sequence": 1}, None)


def test_a_request_for_fewer_replicas_gets_a_warning_with_those_that_stay() -> None:
    def replica(name: str, **annotations: str) -> Object:
        owner = {"kind": "ManagedSeedSet", "name": "s", "uid": "u", "controller": True}
        meta = {"name": name, "namespace": "garden", "ownerReferences": [owner], "annotations": annotations}
        return {**resources.MANAGED_SEEDS.type_meta, "metadata": meta}

    shoot = {**resources.SHOOTS.type_meta, "spec": {"seedName": "s-1"}}
    used = {**shoot, "metadata": {"name": "x", "namespace": "garden-dev"}}
    protected = {"seedmanagement.gardener.cloud/protect-from-deletion": "true"}
    own = {**shoot, "metadata": {"name": "s-3", "namespace": "garden", "annotations": protected}, "spec": {}}
    there = [replica("s-0"), replica("s-1"), replica("s-2", **protected), replica("s-3"), own, used]
    requested = Asked(MANAGED_SEED_SET, garden=there)
    stored = requested.create({**managed_seed_set(replicas=4), "metadata": {**META, "uid": "u"}}).object
    warned = "3 replicas stay while Shoots are on their Seeds, or while they are protected: s-1, s-2, s-3"
    for replicas, warnings in ((5, ()), (3, ()), (2, (warned,)), (0, (warned,))):
        changed = requested.update(stored, {**stored, "spec": {**stored["spec"], "replicas": replicas}})
        assert (changed.code, changed.warnings) == (200, warnings), changed.message


@pytest.mark.parametrize(("policy", "code"), [("Foreground", 403), ("Background", 200), ("Orphan", 200)])
def test_the_replicas_of_a_set_are_deleted_in_order(policy: str, code: int) -> None:
    refused = Asked(MANAGED_SEED_SET).delete(managed_seed_set(), propagationPolicy=policy)
    assert (refused.code, "propagationPolicy Foreground" in refused.message) == (code, code == 403)
    assert Asked(MANAGED_SEED_SET).delete(managed_seed_set()).code == 200


# --- SeedAutoscalers


def metric(name: str = "shoots", **target: Any) -> Object:
    wanted = target or {"type": "Utilization", "averageUtilization": 80}
    return {"type": "Resource", "resource": {"name": name, "target": wanted}}


def autoscaler(*metrics: Object, **spec: Any) -> Object:
    target = {"apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeedSet", "name": "s"}
    return {"metadata": META, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": list(metrics), **spec}}


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (autoscaler(metric()), set()),
        (autoscaler(metric(), metric("pods", type="AverageValue", averageValue="500m")), set()),
        (autoscaler(metric(type="AverageValue", averageValue="0")), {"spec.metrics[0].resource.target.averageValue"}),
        (autoscaler(metric(), metric()), {"spec.metrics[1].resource.name"}),
        (autoscaler(metric(type="AverageValue", averageUtilization=1)), {"spec.metrics[0].resource.target"}),
        (autoscaler(metric(), minReplicas=4), {"spec.maxReplicas"}),
        (autoscaler(metric(), minReplicas=0), {"spec.minReplicas"}),
        (autoscaler(metric(), behavior={"tolerancePercent": 51}), {"spec.behavior.tolerancePercent"}),
        (autoscaler(metric(), behavior={"scaleIn": {"maxStep": 0}}), {"spec.behavior.scaleIn.maxStep"}),
        (
            autoscaler(metric(), scaleTargetRef={"apiVersion": "apps/v1", "kind": "ManagedSeedSet", "name": "s"}),
            {"spec.scaleTargetRef.apiVersion"},
        ),
        ({**autoscaler(metric()), "metadata": {"name": "s", "namespace": "garden-dev"}}, {"metadata.namespace"}),
    ],
)
def test_autoscalers(obj: Object, fields: set[str]) -> None:
    outcome = Asked(SEED_AUTOSCALER).create(obj)
    assert (outcome.code, outcome.fields) == (422 if fields else 200, fields), outcome.message


def test_an_autoscaler_looks_at_shoots_unless_it_specifies_otherwise() -> None:
    obj = autoscaler()
    del obj["spec"]["metrics"]
    spec = Asked(SEED_AUTOSCALER).create(obj).spec
    assert spec["metrics"] == [metric()]
    assert (spec["minReplicas"], spec["includePendingShoots"], spec["minFreeShoots"]) == (1, True, 0)
    assert spec["behavior"] == {
        "scaleOut": {"stabilizationWindowSeconds": 0, "maxStep": 2, "cooldownSeconds": 0},
        "scaleIn": {"stabilizationWindowSeconds": 3600, "maxStep": 1, "cooldownSeconds": 1800, "disabled": False},
        "tolerancePercent": 10,
        "pendingShootGracePeriodSeconds": 60,
    }


def test_a_set_has_one_autoscaler() -> None:
    kind = SEED_AUTOSCALERS.type_meta
    other = {**kind, **autoscaler(metric()), "metadata": {**META, "name": "other"}}
    requested = Asked(SEED_AUTOSCALER, garden=[other])
    refused = requested.create(autoscaler(metric()))
    assert (refused.code, refused.fields) == (422, {"spec.scaleTargetRef"})
    assert "ManagedSeedSet s is already scaled by SeedAutoscaler other" in refused.message
    stored = {**autoscaler(metric()), "metadata": META}
    assert requested.update(stored, autoscaler(metric(), maxReplicas=4)).code == 200
    going = {**other, "metadata": {**other["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert Asked(SEED_AUTOSCALER, garden=[going]).create(autoscaler(metric())).code == 200


# --- whatever a configuration is

VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1, "", "x", "nginx", "10.0.0.0/8", "250"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["key", "name", "type"]), inner, max_size=2)
    ),
    max_leaves=4,
)
SECTIONS = {
    name: st.dictionaries(st.sampled_from(fields), VALUES, max_size=3) | VALUES
    for name, fields in {
        "provider": ["type", "region", "zones"],
        "networks": ["pods", "nodes", "services", "ipFamilies", "shootDefaults", "blockCIDRs"],
        "dns": ["provider"],
        "ingress": ["domain", "controller"],
        "backup": ["provider", "region", "secretRef"],
        "settings": ["verticalPodAutoscaler", "loadBalancerServices", "excessCapacityReservation"],
        "taints": ["key"],
    }.items()
}
CONFIGURATIONS = st.fixed_dictionaries(
    {},
    optional={
        "seedConfig": st.fixed_dictionaries(
            {}, optional={"spec": st.fixed_dictionaries({}, optional=SECTIONS), "metadata": VALUES}
        )
        | VALUES,
        "gardenClientConnection": VALUES,
        "resources": st.dictionaries(st.sampled_from(["capacity", "reserved"]), VALUES) | VALUES,
        "kind": st.sampled_from([KIND["kind"], "Other"]) | VALUES,
    },
)
SHOOT: Object = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": META,
    "spec": {
        "region": "r",
        "dns": {"domain": "a.b"},
        "kubernetes": {"verticalPodAutoscaler": {"enabled": True}},
        "networking": {"pods": "10.20.0.0/16"},
        "provider": {"type": "local", "workers": [{"name": "w", "zones": ["a"]}]},
    },
}


@settings(max_examples=60, deadline=None)
@given(CONFIGURATIONS)
def test_any_configuration_gets_an_answer_and_what_is_stored_is_not_changed_again(config: Object) -> None:
    for kind, obj in (
        (MANAGED_SEED, {"metadata": META, "spec": {"shoot": {"name": "s"}, "gardenlet": {"config": config}}}),
        (GARDENLET, {**gardenlet(), "spec": {**gardenlet()["spec"], "config": config}}),
        (MANAGED_SEED_SET, managed_seed_set(**{CONFIG: config})),
    ):
        requested = Asked(kind, garden=[SHOOT])
        created = requested.create(obj)
        assert created.code in {200, 422}
        if created.status is None:
            again = requested.create(created.object)
            assert (again.status, again.object) == (None, created.object)
