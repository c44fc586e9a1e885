"""ManagedSeeds: what a Seed gets from its Shoot, what both must be, and what stays while Shoots use the Seed."""

import copy
from typing import Any

import pytest

from gardener.api import garden as resources
from kit.garden_objects import shoot
from kit.objects import obj
from kit.webhooks.garden import Asked, Outcome
from kube.objects import Object
from kube.resources import SECRETS
from webhooks.garden.kinds.managed_seed import MANAGED_SEED

CONFIG = "spec.gardenlet.config"
SEED = f"{CONFIG}.seedConfig.spec"
DOMAIN = "s.garden.example.com"
KIND = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}


def host(**changes: Any) -> Object:
    """The Shoot that becomes a Seed."""
    spec: Object = {
        "region": "r",
        "dns": {"domain": DOMAIN},
        "networking": {"nodes": "10.250.0.0/16", "pods": "100.64.0.0/11", "services": "100.104.0.0/13"},
        "kubernetes": {"verticalPodAutoscaler": {"enabled": True}},
        "provider": {"type": "local", "workers": [{"name": "w", "zones": ["b", "a"]}, {"name": "x", "zones": ["a"]}]},
    }
    return shoot("garden/s", **spec | changes)


DEFAULT_DOMAIN = obj(
    SECRETS,
    "garden/default-domain",
    labels={"gardener.cloud/role": "default-domain"},
    annotations={"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": "example.com"},
)
FOUND: Object = {
    "provider": {"type": "local", "region": "r", "zones": ["a", "b"]},
    "networks": {"nodes": "10.250.0.0/16", "pods": "100.64.0.0/11", "services": "100.104.0.0/13"},
    "dns": {"provider": {"type": "local", "secretRef": {"name": "default-domain", "namespace": "garden"}}},
    "ingress": {"domain": f"ingress.{DOMAIN}", "controller": {"kind": "nginx"}},
    "settings": {"verticalPodAutoscaler": {"enabled": False}},
}


def managed(seed: Object | None = None, *, namespace: str = "garden", **gardenlet: Any) -> Object:
    config = {**KIND, "seedConfig": {"spec": seed or {}}}
    spec = {"shoot": {"name": "s"}, "gardenlet": {"config": config, **gardenlet}}
    return {"metadata": {"name": "s", "namespace": namespace}, "spec": spec}


def created(obj: Object, *garden: Object, of: Object | None = None) -> Outcome:
    return Asked(MANAGED_SEED, garden=[of or host(), DEFAULT_DOMAIN, *garden]).create(obj)


def seed_of(outcome: Outcome) -> Object:
    assert outcome.status is None, outcome.message
    seed: Object = outcome.spec["gardenlet"]["config"]["seedConfig"]["spec"]
    return seed


# --- defaults


def test_a_seed_is_what_its_shoot_states() -> None:
    outcome = created(
        {"metadata": {"name": "s", "namespace": "garden"}, "spec": {"shoot": {"name": "s"}, "gardenlet": {}}}
    )
    assert seed_of(outcome) == FOUND
    gardenlet = outcome.spec["gardenlet"]
    config = {**KIND, "resources": {"capacity": {"shoots": "250"}}, "seedConfig": {"spec": FOUND}}
    deployment = {"replicaCount": 2, "revisionHistoryLimit": 2, "image": {"pullPolicy": "IfNotPresent"}}
    bootstrap = {"bootstrap": "BootstrapToken", "mergeWithParent": True}
    assert gardenlet == {"config": config, "deployment": deployment, **bootstrap}


def test_what_the_author_states_stays_and_other_parts_of_the_configuration_are_left_alone() -> None:
    obj = managed({"taints": [{"key": "a"}], "provider": {"zones": ["a"]}}, deployment={"image": {"tag": "latest"}})
    config = obj["spec"]["gardenlet"]["config"]
    config["resources"] = {"capacity": {"shoots": 5, "pods": "7"}}
    config["controllers"] = {"seed": {"syncPeriod": None}}
    outcome = created(obj)
    seed = seed_of(outcome)
    assert (seed["taints"], seed["provider"]["zones"]) == ([{"key": "a"}], ["a"])
    stored = outcome.spec["gardenlet"]
    assert stored["config"]["resources"] == {"capacity": {"shoots": 5, "pods": "7"}}
    assert stored["config"]["controllers"] == {"seed": {"syncPeriod": None}}
    assert stored["deployment"]["image"] == {"tag": "latest", "pullPolicy": "Always"}


def test_backups_are_by_the_provider_of_the_shoot_with_a_secret_of_the_managed_seed() -> None:
    secret = {"name": "backup-s", "namespace": "garden"}
    assert seed_of(created(managed({"backup": {}})))["backup"] == {"provider": "local", "secretRef": secret}


OWN = {"type": "route53", "primary": True}
SECRET_BINDING = obj(resources.SECRET_BINDINGS, "garden/sb", secretRef={"name": "c", "namespace": "other"})
CREDENTIALS_BINDING = obj(
    resources.CREDENTIALS_BINDINGS, "garden/cb", credentialsRef={"kind": "Secret", "name": "d", "namespace": "garden"}
)


@pytest.mark.parametrize(
    ("provider", "binding", "secret"),
    [
        ({"secretName": "own"}, {}, {"name": "own", "namespace": "garden"}),
        ({}, {"secretBindingName": "sb"}, {"name": "c", "namespace": "other"}),
        ({}, {"credentialsBindingName": "cb"}, {"name": "d", "namespace": "garden"}),
    ],
)
def test_dns_records_are_made_by_the_primary_provider_of_the_shoot(
    provider: Object, binding: Object, secret: Object
) -> None:
    providers = [{"type": "other", "secretName": "x"}, {"type": "route53", "primary": True, **provider}]
    of = host(dns={"domain": "x.org", "providers": providers}, **binding)
    found = seed_of(created(managed(), SECRET_BINDING, CREDENTIALS_BINDING, of=of))["dns"]["provider"]
    assert found == {"type": "route53", "secretRef": secret}


UNMANAGED = {"type": "unmanaged", "primary": True}


def test_a_domain_of_the_garden_is_served_by_it_though_the_shoot_does_without() -> None:
    found = seed_of(created(managed(), of=host(dns={"domain": DOMAIN, "providers": [UNMANAGED]})))
    assert found["dns"] == FOUND["dns"]


@pytest.mark.parametrize(
    ("dns", "binding", "reason"),
    [
        ({}, {}, "domain of shoot garden/s is neither a custom domain nor a default domain"),
        ({"providers": [UNMANAGED]}, {}, "domain of shoot garden/s is neither a custom domain nor a default domain"),
        ({"providers": [{"primary": True}]}, {}, "primary DNS provider of shoot garden/s does not have a type"),
        ({"providers": [OWN]}, {"secretBindingName": "none"}, "secret binding garden/none not found"),
        ({"providers": [OWN]}, {"credentialsBindingName": "none"}, "credentials binding garden/none not found"),
        (
            {"providers": [OWN]},
            {},
            "cannot initialize a reference to the primary DNS provider secret of shoot garden/s",
        ),
    ],
)
def test_a_user_must_make_dns_records(dns: Object, binding: Object, reason: str) -> None:
    refused = created(managed(), of=host(dns={"domain": "x.org", **dns}, **binding))
    assert (refused.code, refused.fields, reason in refused.message) == (422, {f"{SEED}.ingress"}, True)


def test_who_makes_dns_records_may_be_set() -> None:
    own = {"provider": {"type": "x", "secretRef": {"name": "n", "namespace": "garden"}}}
    assert seed_of(created(managed({"dns": own}), of=host(dns={"domain": "x.org"})))["dns"] == own


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (
            {"kubeAPIServer": False, "kubeControllerManager": False, "kubeProxy": False},
            {"kube-apiserver", "kube-controller-manager", "kube-proxy"},
        ),
        ({"kubeAPIServer": True, "kubeProxy": False}, {"kube-proxy"}),
        ({}, set()),
    ],
)
def test_topology_aware_routing_is_not_switched_off_in_the_shoot(settings: Object, named: set[str]) -> None:
    disabled = {field: {"featureGates": {"TopologyAwareHints": value}} for field, value in settings.items()}
    of = host(kubernetes={"verticalPodAutoscaler": {"enabled": True}, **disabled})
    outcome = created(managed({"settings": {"topologyAwareRouting": {"enabled": True}}}), of=of)
    assert outcome.fields == ({f"{SEED}.settings.topologyAwareRouting.enabled"} if named else set())
    for component in named:
        assert f"when the TopologyAwareHints feature gate is disabled for {component}" in outcome.message
    assert created(managed(), of=of).status is None


def test_what_was_filled_in_is_not_filled_in_again() -> None:
    old = created(managed()).object
    changed = host(networking={"nodes": "10.1.0.0/16", "pods": "10.2.0.0/16", "services": "10.3.0.0/16"})
    new = {**copy.deepcopy(old), "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    updated = Asked(MANAGED_SEED, garden=[changed, DEFAULT_DOMAIN]).update(old, new)
    assert updated.spec == old["spec"]


# --- rules


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"dns": {}}, ["does not specify a domain"]),
        ({"addons": {"nginxIngress": {"enabled": True}}}, ["shoot ingress addon is not supported for managed seeds"]),
        ({"kubernetes": {}}, ["shoot VPA has to be enabled for managed seeds"]),
        (
            {"kubernetes": {}, "provider": {"type": "local"}},
            ["shoot VPA has to be enabled", "workerless shoot cannot be used to create managed seed"],
        ),
    ],
)
def test_not_every_shoot_can_become_a_seed(changes: Object, reasons: list[str]) -> None:
    refused = created(managed(), of=host(**changes))
    assert (refused.code, refused.fields) == (422, {"spec.shoot.name"})
    assert [reason for reason in reasons if reason not in refused.message] == []


def test_the_shoot_exists_and_becomes_one_seed_only() -> None:
    assert "shoot garden/s not found" in Asked(MANAGED_SEED).create(managed()).message
    other = obj(resources.MANAGED_SEEDS, "garden/other", spec={"shoot": {"name": "s"}})
    taken = "shoot garden/s already registered as seed by managed seed garden/other"
    assert taken in created(managed(), other).message
    elsewhere = obj(resources.MANAGED_SEEDS, "garden-dev/other", spec={"shoot": {"name": "s"}})
    assert created(managed(), elsewhere).status is None


def test_a_shoot_that_has_gone_does_not_refuse_another_change() -> None:
    old = created(managed()).object
    new = copy.deepcopy(old)
    new["spec"]["gardenlet"]["deployment"]["replicaCount"] = 3
    assert Asked(MANAGED_SEED).update(old, new).status is None


def test_managed_seeds_are_in_the_garden_and_not_beside_a_gardenlet_of_that_name() -> None:
    assert Asked(MANAGED_SEED).create(managed(namespace="garden-dev")).fields == {"metadata.namespace"}
    refused = created(managed(), obj(resources.GARDENLETS, "garden/s"))
    assert refused.code == 403
    assert "cannot create ManagedSeed garden/s since there is already a Gardenlet object" in refused.message


@pytest.mark.parametrize(
    ("seed", "fields"),
    [
        ({"networks": {"pods": "10.1.0.0/16", "nodes": "10.2.0.0/16"}}, {"networks.pods", "networks.nodes"}),
        ({"provider": {"type": "x", "region": "x"}}, {"provider.type", "provider.region"}),
        ({"ingress": {"domain": "x.org"}}, {"ingress.domain"}),
        ({"settings": {"verticalPodAutoscaler": {"enabled": True}}}, {"settings.verticalPodAutoscaler.enabled"}),
        ({"provider": {"zones": ["a", "z"]}}, {"provider.zones"}),
        ({"networks": {"pods": "x"}}, {"networks.pods"}),
        ({"taints": [{"key": "a"}, {"key": "a"}]}, {"taints[1]"}),
        ({"taints": [{}]}, {"taints[0].key"}),
        ({"provider": 5}, {"provider"}),
        ({"backup": {"provider": "other"}}, {"backup.region"}),
        ({"ingress": {"controller": {"kind": "traefik"}}}, {"ingress.controller.kind"}),
    ],
)
def test_a_seed_is_valid_and_states_nothing_else_than_its_shoot(seed: Object, fields: set[str]) -> None:
    if "backup" in seed:
        seed["backup"]["secretRef"] = {"name": "b", "namespace": "garden"}
    refused = created(managed(seed))
    assert (refused.code, refused.fields) == (422, {f"{SEED}.{field}" for field in fields}), refused.message


@pytest.mark.parametrize(
    ("gardenlet", "connection", "fields"),
    [
        ({}, {"kubeconfig": "x"}, {"kubeconfig"}),
        ({"bootstrap": "ServiceAccount"}, {"kubeconfig": "x"}, {"kubeconfig"}),
        ({"bootstrap": "None"}, None, set()),
        ({"bootstrap": "None", "mergeWithParent": False}, None, {"kubeconfig"}),
        ({"bootstrap": "None", "mergeWithParent": False}, {"kubeconfig": "x"}, set()),
        (
            {"bootstrap": "None"},
            {"bootstrapKubeconfig": {}, "kubeconfigSecret": {}},
            {"bootstrapKubeconfig", "kubeconfigSecret"},
        ),
    ],
)
def test_a_kubeconfig_is_there_if_there_is_no_bootstrap(
    gardenlet: Object, connection: Object | None, fields: set[str]
) -> None:
    obj = managed(**gardenlet)
    obj["spec"]["gardenlet"]["config"]["gardenClientConnection"] = connection
    outcome = created(obj)
    assert outcome.fields == {f"{CONFIG}.gardenClientConnection.{field}" for field in fields}


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"kind": "Other"}, {"kind"}),
        ({"apiVersion": "v1"}, {"apiVersion"}),
        ({"seedConfig": 5}, {"seedConfig"}),
        ({"seedConfig": {"metadata": {"name": "s"}}}, {"seedConfig.metadata.name"}),
        ({"seedConfig": {"metadata": {"labels": {"a b": "c"}}}}, {"seedConfig.metadata.labels"}),
        ({"resources": {"capacity": {"shoots": "many"}}}, {"resources.capacity.shoots"}),
        ({"resources": {"reserved": {"pods": 1}}}, {"resources.reserved.pods"}),
        ({"resources": {"capacity": {"pods": 3}, "reserved": {"pods": "3001m"}}}, {"resources.reserved.pods"}),
        ({"resources": {"capacity": {"pods": "2001m"}, "reserved": {"pods": 3, "shoots": 250}}}, set()),
    ],
)
def test_a_configuration_is_one(config: Object, fields: set[str]) -> None:
    obj = managed()
    obj["spec"]["gardenlet"]["config"] = {**KIND, **config}
    assert created(obj).fields == {f"{CONFIG}.{field}" for field in fields}


@pytest.mark.parametrize(
    ("deployment", "fields"),
    [
        ({"image": {"repository": "", "tag": ""}}, {"image.repository", "image.tag"}),
        ({"serviceAccountName": "a_b"}, {"serviceAccountName"}),
        ({"podLabels": {"a b": "c"}}, {"podLabels"}),
        ({"podAnnotations": {"a b": "c"}}, {"podAnnotations"}),
        ({"podAnnotations": {"A/b": "c d"}, "podLabels": {"a": ""}, "serviceAccountName": "a.b"}, set()),
    ],
)
def test_the_deployment_of_a_gardenlet_is_possible(deployment: Object, fields: set[str]) -> None:
    assert created(managed(deployment=deployment)).fields == {f"spec.gardenlet.deployment.{each}" for each in fields}


def test_a_gardenlet_without_a_way_into_the_garden_is_warned_of() -> None:
    outcome = created(managed(bootstrap="None"))
    assert outcome.status is None
    (warning,) = outcome.warnings
    assert "it does not inherit that of its parent" in warning
    explicit = managed(bootstrap="None")
    explicit["spec"]["gardenlet"]["config"]["gardenClientConnection"] = {"kubeconfig": "x"}
    assert (created(explicit).warnings, created(managed()).warnings) == ((), ())


# --- without a gardenlet of its own


TEMPLATE = "spec.seedTemplate"


def template(seed: Object | None = None, **metadata: Any) -> Object:
    spec = {"shoot": {"name": "s"}, "seedTemplate": {"metadata": metadata, "spec": seed or {}}}
    return {"metadata": {"name": "s", "namespace": "garden"}, "spec": spec}


def test_the_seed_of_a_template_is_what_its_shoot_states() -> None:
    stored = created(template({"taints": [{"key": "a"}], "backup": {}}, labels={"a": "b"})).spec
    backup = {"provider": "local", "secretRef": {"name": "backup-s", "namespace": "garden"}}
    seed = {**FOUND, "taints": [{"key": "a"}], "backup": backup}
    assert stored == {"shoot": {"name": "s"}, "seedTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": seed}}
    bare = {"metadata": {"name": "s", "namespace": "garden"}, "spec": {"shoot": {"name": "s"}, "seedTemplate": {}}}
    assert created(bare).spec["seedTemplate"] == {"spec": FOUND}


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        (template(name="s"), {"metadata.name"}),
        (template(labels={"a b": "c"}), {"metadata.labels"}),
        (template({"provider": {"type": "x", "region": "x"}}), {"spec.provider.type", "spec.provider.region"}),
        (template({"provider": {"zones": ["a", "z"]}}), {"spec.provider.zones"}),
        (template({"networks": {"pods": "10.1.0.0/16"}}), {"spec.networks.pods"}),
        (template({"ingress": {"domain": "x.org"}}), {"spec.ingress.domain"}),
        (
            template({"settings": {"verticalPodAutoscaler": {"enabled": True}}}),
            {"spec.settings.verticalPodAutoscaler.enabled"},
        ),
        (template({"taints": [{"key": "a"}, {"key": "a"}]}), {"spec.taints[1]"}),
        (template({"provider": 5}), {"spec.provider"}),
    ],
)
def test_the_seed_of_a_template_is_valid_and_states_nothing_else_than_its_shoot(obj: Object, fields: set[str]) -> None:
    refused = created(obj)
    assert (refused.code, refused.fields) == (422, {f"{TEMPLATE}.{field}" for field in fields}), refused.message


def test_a_template_needs_a_shoot_and_a_user_who_makes_dns_records() -> None:
    assert "shoot garden/s not found" in Asked(MANAGED_SEED).create(template()).message
    refused = created(template(), of=host(dns={"domain": "x.org"}))
    assert refused.fields == {f"{TEMPLATE}.spec.ingress"}


def test_the_name_of_a_seed_is_that_of_its_managed_seed() -> None:
    assert "seed name is forbidden" in created(template(name="s")).message


def test_what_identifies_the_seed_of_a_template_stays() -> None:
    old = created(template({"backup": {}})).object
    new = copy.deepcopy(old)
    seed = new["spec"]["seedTemplate"]["spec"]
    seed["networks"]["nodes"], seed["provider"]["zones"] = "10.9.0.0/16", ["a", "z"]
    del seed["backup"]
    refused = Asked(MANAGED_SEED, garden=[host(), DEFAULT_DOMAIN]).update(old, new)
    fields = {"networks.nodes", "provider.zones", "backup.provider"}
    assert refused.fields == {f"{TEMPLATE}.spec.{field}" for field in fields}


def test_what_a_shoot_states_late_comes_into_the_template() -> None:
    old = created(template(), of=host(networking={"nodes": "10.250.0.0/16"})).object
    assert old["spec"]["seedTemplate"]["spec"]["networks"] == {"nodes": "10.250.0.0/16"}
    new = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    updated = Asked(MANAGED_SEED, garden=[host(), DEFAULT_DOMAIN]).update(old, new)
    assert (updated.status, updated.spec["seedTemplate"]["spec"]) == (None, FOUND)


# --- changes


def test_what_identifies_the_seed_stays() -> None:
    old = created(managed({"backup": {}})).object
    new = copy.deepcopy(old)
    seed = new["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    seed["networks"]["nodes"] = "10.9.0.0/16"
    seed["backup"]["provider"] = "other"
    seed["backup"]["region"] = "r"
    refused = Asked(MANAGED_SEED, garden=[host(), DEFAULT_DOMAIN]).update(old, new)
    assert refused.fields == {f"{SEED}.networks.nodes", f"{SEED}.backup.provider"}


@pytest.mark.parametrize(
    ("zones", "used", "reason"),
    [
        (["a", "b", "z"], False, "added zones must match zone names configured for workers"),
        (["a"], True, "zones must not be removed while shoots are still scheduled onto seed"),
        (["a"], False, ""),
    ],
)
def test_zones_follow_the_shoot_and_stay_while_shoots_use_them(zones: list[str], *, used: bool, reason: str) -> None:
    old = created(managed()).object
    new = copy.deepcopy(old)
    new["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["provider"]["zones"] = zones
    user = obj(resources.SHOOTS, "garden-dev/user", spec={"seedName": "s"})
    outcome = Asked(MANAGED_SEED, garden=[host(), DEFAULT_DOMAIN, *([user] if used else [])]).update(old, new)
    assert outcome.fields == ({f"{SEED}.provider.zones"} if reason else set())
    assert reason in outcome.message
    values = {"a": "Forbidden: zones", "z": 'Invalid value: ["z"]: added'}
    assert not reason or values[zones[-1]] in outcome.message


def test_a_managed_seed_whose_seed_is_used_is_not_deleted() -> None:
    old = created(managed()).object
    user = obj(resources.SHOOTS, "garden-dev/user", status={"seedName": "s"})
    refused = Asked(MANAGED_SEED, garden=[user]).delete(old)
    message = "cannot delete managed seed garden/s since its seed s is still used by shoot(s)"
    assert (refused.code, message in refused.message) == (403, True)
    assert Asked(MANAGED_SEED).delete(old).status is None
