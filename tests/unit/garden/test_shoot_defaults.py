"""Shoots: what is filled in when they are written."""

from typing import Any

import pytest

from gardener.api import garden
from gardener.garden.windows import parse_window
from kit.webhooks.shoots import (
    PROFILE,
    SEED,
    create,
    of,
    requested,
    stored,
    submitted,
    update,
    with_fields,
    worker,
    workerless,
)
from kube.objects import Object
from kube.paths import at


def test_a_short_shoot_gets_what_the_documentation_promises() -> None:
    created = create(submitted(kubernetes__version="1.30", cloudProfile=None, cloudProfileName="local"))
    assert created.status is None, created.message
    meta, spec = created.object["metadata"], created.spec
    assert meta["annotations"] == {
        "gardener.cloud/created-by": "ann",
        "shoot.gardener.cloud/tasks": (
            "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"
        ),
    }
    assert {"provider.extensions.gardener.cloud/local", "networking.extensions.gardener.cloud/calico"} <= set(
        meta["labels"]
    )
    assert spec["cloudProfile"] == {"kind": "CloudProfile", "name": "local"}
    assert spec["purpose"] == "evaluation"
    assert spec["kubernetes"]["version"] == "1.30.5"
    assert spec["kubernetes"]["kubeControllerManager"] == {"nodeCIDRMaskSize": 24, "nodeMonitorGracePeriod": "40s"}
    [pool] = spec["provider"]["workers"]
    assert pool["machine"] == {"type": "small", "architecture": "amd64", "image": {"name": "linux", "version": "2.0.0"}}
    assert (pool["cri"], pool["maxSurge"], pool["maxUnavailable"]) == ({"name": "containerd"}, 1, 0)
    window = parse_window(**spec["maintenance"]["timeWindow"])
    assert window.length.total_seconds() == 3600
    assert "dns" not in spec
    assert "operation" not in created.object


def offering(*versions: str) -> Object:
    return with_fields(PROFILE, spec__kubernetes={"versions": [{"version": each} for each in versions]})


@pytest.mark.parametrize(
    ("version", "taints", "addons", "anonymous", "names"),
    [
        ("1.32.1", 10, True, False, {"cloudProfile", "cloudProfileName"}),
        ("1.33.1", None, True, False, {"cloudProfile", "cloudProfileName"}),
        ("1.34.1", None, True, False, {"cloudProfile"}),
        ("1.35.1", None, False, None, {"cloudProfile"}),
    ],
)
def test_a_version_gets_no_setting_that_it_forbids(
    version: str, taints: int | None, addons: bool, anonymous: bool | None, names: set[str]
) -> None:
    profile = offering("1.31.1", "1.32.1", "1.33.1", "1.34.1", "1.35.1")
    for obj in (
        submitted(kubernetes={"version": version, "clusterAutoscaler": {}}),
        submitted(
            kubernetes={"version": version[:4], "clusterAutoscaler": {}}, cloudProfile=None, cloudProfileName="local"
        ),
    ):
        created = create(obj, profile)
        assert created.status is None, created.message
        kubernetes = created.spec["kubernetes"]
        assert kubernetes["version"] == version
        assert kubernetes["clusterAutoscaler"].get("maxEmptyBulkDelete") == taints
        assert kubernetes["kubeAPIServer"].get("enableAnonymousAuthentication") is anonymous
        assert ("addons" in created.spec) is addons
        assert {name for name in created.spec if name.startswith("cloudProfile")} == names
    bare = create(workerless(kubernetes={"version": version}), profile)
    assert bare.spec["kubernetes"]["kubeAPIServer"].get("enableAnonymousAuthentication") is anonymous


def test_a_workerless_shoot_gets_nothing_for_workers() -> None:
    created = create(workerless())
    assert created.status is None, created.message
    assert not {"kubelet", "kubeProxy", "kubeScheduler", "kubeControllerManager"} & set(created.spec["kubernetes"])
    assert created.spec["maintenance"]["autoUpdate"] == {"kubernetesVersion": True}
    assert not {"addons", "systemComponents"} & set(created.spec)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", "1.31.2"), ("1", "1.31.2"), ("1.30", "1.30.5"), ("1.29", "1.29.8"), ("1.30.1", "1.30.1")],
)
def test_a_version_is_completed_with_the_newest_usable_one(given: str, expected: str) -> None:
    assert create(submitted(kubernetes__version=given)).spec["kubernetes"]["version"] == expected


@pytest.mark.parametrize("given", ["1.32", "1.28", "2"])
def test_a_version_that_the_profile_cannot_complete_is_refused(given: str) -> None:
    refused = create(submitted(kubernetes__version=given))
    assert "spec.kubernetes.version: Unsupported value" in refused.message


def test_a_version_that_is_left_out_later_stays() -> None:
    old = stored(kubernetes__version="1.30.1")
    assert update(old, kubernetes__version=None).spec["kubernetes"]["version"] == "1.30.1"


def test_pools_may_have_short_versions_up_to_that_of_the_control_plane() -> None:
    pool = worker(kubernetes__version="1")
    created = create(submitted(kubernetes__version="1.30.1", provider__workers=[pool]))
    assert at(created.spec["provider"]["workers"][0], "kubernetes", "version") == "1.30.1"


@pytest.mark.parametrize(
    ("fields", "mask"),
    [
        ({}, 24),
        ({"kubernetes__kubelet__maxPods": 50}, 25),
        ({"kubernetes__kubelet__maxPods": 250}, 23),
        ({"provider__workers": [worker(), worker("v", kubernetes__kubelet__maxPods=250)]}, 23),
        ({"networking__ipFamilies": ["IPv6"]}, 64),
    ],
)
def test_the_mask_of_node_networks_follows_from_the_number_of_pods(fields: dict[str, Any], mask: int) -> None:
    assert create(submitted(**fields)).spec["kubernetes"]["kubeControllerManager"]["nodeCIDRMaskSize"] == mask


def test_the_mask_of_node_networks_stays_when_more_pods_are_wanted() -> None:
    changed = update(stored(), kubernetes__kubelet__maxPods=250, kubernetes__kubeControllerManager=None)
    assert changed.status is None, changed.message
    assert changed.spec["kubernetes"]["kubeControllerManager"]["nodeCIDRMaskSize"] == 24


def test_the_maintenance_window_that_is_left_out_later_stays() -> None:
    old = stored()
    assert update(old, maintenance=None).spec["maintenance"]["timeWindow"] == old["spec"]["maintenance"]["timeWindow"]


def test_swap_is_limited_where_it_is_on() -> None:
    swap = {"failSwapOn": False, "featureGates": {"NodeSwap": True}}
    created = create(submitted(kubernetes__kubelet=swap, provider__workers=[worker(kubernetes={"kubelet": swap})]))
    limited = {"swapBehavior": "LimitedSwap"}
    assert created.spec["kubernetes"]["kubelet"]["memorySwap"] == limited
    assert created.spec["provider"]["workers"][0]["kubernetes"]["kubelet"]["memorySwap"] == limited


@pytest.mark.parametrize(
    ("machine", "image"),
    [
        ({"type": "small"}, ("linux", "2.0.0")),
        ({"type": "arm", "architecture": "arm64"}, ("linux", "2.0.0")),
        ({"type": "small", "image": {"name": "linux"}}, ("linux", "2.0.0")),
        ({"type": "small", "image": {"name": "linux", "version": "1.0.0"}}, ("linux", "1.0.0")),
    ],
)
def test_the_image_of_a_pool_is_the_newest_that_fits(machine: Object, image: tuple[str, str]) -> None:
    created = create(submitted(provider__workers=[worker(machine=machine)]))
    assert created.status is None, created.message
    found = created.spec["provider"]["workers"][0]["machine"]["image"]
    assert (found["name"], found["version"]) == image


def test_a_pool_keeps_its_image_when_the_profile_has_a_newer_one() -> None:
    pool = worker(machine__image={"name": "linux", "version": "1.0.0"})
    old = stored(submitted(provider__workers=[pool]))
    changed = update(old, provider__workers=[worker(), worker("new")])
    images = [each["machine"]["image"]["version"] for each in changed.spec["provider"]["workers"]]
    assert images == ["1.0.0", "2.0.0"]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"cloudProfile": None, "cloudProfileName": "local"}, ("CloudProfile", "local", "local")),
        ({"cloudProfile": {"name": "local"}}, ("CloudProfile", "local", "local")),
        ({"cloudProfileName": "other"}, ("CloudProfile", "local", "local")),
        (
            {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "n"}, "cloudProfileName": "x"},
            ("NamespacedCloudProfile", "n", None),
        ),
    ],
)
def test_both_names_of_the_profile_agree(fields: dict[str, Any], kept: tuple[str, ...]) -> None:
    spec = create(submitted(**fields)).spec
    assert (spec["cloudProfile"]["kind"], spec["cloudProfile"]["name"], spec.get("cloudProfileName")) == kept


def test_labels_name_the_extensions_and_seeds_of_a_shoot() -> None:
    image = {"name": "linux", "version": "1.0.0"}
    extensions = [{"type": "some"}, {"type": "all", "disabled": True}]
    stale = {"extensions.extensions.gardener.cloud/gone": "true", "seed.gardener.cloud/gone": "true", "mine": "x"}
    sent = submitted(
        provider__workers=[worker(machine__image=image)], extensions=extensions, seedName="seed", meta__labels=stale
    )
    created = create(sent)
    assert created.status is None, created.message
    assert created.object["metadata"]["labels"] == {
        "mine": "x",
        "extensions.extensions.gardener.cloud/some": "true",
        "networking.extensions.gardener.cloud/calico": "true",
        "operatingsystemconfig.extensions.gardener.cloud/linux": "true",
        "provider.extensions.gardener.cloud/local": "true",
        "seed.gardener.cloud/seed": "true",
    }


def test_a_new_shoot_tolerates_what_its_project_does() -> None:
    assert create(submitted()).spec["tolerations"] == [{"key": "d"}]
    own = [{"key": "w"}, {"key": "d", "value": "v"}]
    assert create(submitted(tolerations=own)).spec["tolerations"] == own


def test_operators_tolerate_protected_seeds() -> None:
    sent = with_fields(submitted(), metadata__namespace="garden")
    assert create(sent).spec["tolerations"] == [{"key": "seed.gardener.cloud/protected"}]


def test_networks_are_those_that_the_seed_proposes() -> None:
    networking = create(submitted(seedName="seed")).spec["networking"]
    assert (networking["pods"], networking["services"]) == ("100.96.0.0/11", "100.64.0.0/13")
    given = create(submitted(seedName="seed", networking__pods="10.96.0.0/11")).spec["networking"]
    assert (given["pods"], given["services"]) == ("10.96.0.0/11", "100.64.0.0/13")


def test_what_the_exposure_class_states_is_added_and_does_not_conflict_with_itself() -> None:
    selector = {"matchLabels": {"a": "b"}, "providerTypes": ["z"]}
    exposure = of(
        garden.EXPOSURE_CLASSES,
        "ex",
        handler="h",
        scheduling={"seedSelector": selector, "tolerations": [{"key": "w"}]},
    )
    created = create(submitted(exposureClassName="ex", seedSelector={"providerTypes": ["a"]}), exposure)
    assert created.status is None, created.message
    assert created.spec["seedSelector"] == {"matchLabels": {"a": "b"}, "providerTypes": ["a", "z"]}
    assert created.spec["tolerations"] == [{"key": "d"}, {"key": "w"}]
    assert update(created.object, exposure, purpose="testing").status is None
    conflicting = create(submitted(exposureClassName="ex", tolerations=[{"key": "w", "value": "v"}]), exposure)
    assert "conflicts with the ones of referenced exposureclass" in conflicting.message
    elsewhere = {"matchLabels": {"a": "c"}}
    conflicting = create(submitted(exposureClassName="ex", seedSelector=elsewhere), exposure)
    clash = "matching labels of the seed selector conflicts with the ones of referenced exposureclass"
    assert clash in conflicting.message


def test_warnings_name_what_is_deprecated_and_what_expires() -> None:
    warnings = create(submitted(cloudProfile=None, cloudProfileName="local")).warnings
    assert any("cloudProfileName is deprecated" in each for each in warnings)
    assert any("secretBindingName is deprecated" in each for each in warnings)
    old = with_fields(stored(), spec__kubernetes__version="1.30.0")
    assert "spec.kubernetes.version: version 1.30.0 expired on 2020-01-01" in update(old, purpose="testing").warnings
    schedules = [{"start": "0 0 31 2 *"}, {"start": "30 22 * * *", "location": "Etc/GMT-1"}]
    window = {"begin": "210000+0000", "end": "220000+0000"}
    warnings = create(submitted(hibernation__schedules=schedules, maintenance={"timeWindow": window})).warnings
    assert any("never occurs; correct it" in each for each in warnings)
    assert any(
        "schedules[1].start: the cluster is hibernated in its maintenance time window" in each for each in warnings
    )


def test_a_shoot_whose_seed_arrives_is_complete() -> None:
    bound = requested(SEED).update(old := stored(), with_fields(old, spec__seedName="seed"))
    assert bound.status is None, bound.message
    assert bound.spec["dns"] == {"domain": "a.dev.ex.org"}
    assert bound.spec["networking"]["pods"] == "100.96.0.0/11"


OLD_VERSIONS = with_fields(
    PROFILE,
    spec__kubernetes__versions=[{"version": each} for each in ("1.26.3", "1.27.1")],
    spec__machineImages=[{"name": "linux", "versions": [{"version": "1.0.0"}]}],
)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [("2m0s", "2m0s", "40s"), ("2m", "120s", "40s"), ("2m0s", "1m", "1m"), ("3m", "3m", "3m")],
)
def test_the_default_grace_of_nodes_changes_with_kubernetes_1_27(before: str, now: str, expected: str) -> None:
    path = "kubernetes__kubeControllerManager__nodeMonitorGracePeriod"
    old = stored(submitted(kubernetes__version="1.26.3"), OLD_VERSIONS)
    assert old["spec"]["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] == "2m0s"
    old = with_fields(old, **{f"spec__{path}": before})
    updated = update(old, OLD_VERSIONS, kubernetes__version="1.27.1", **{path: now})
    assert updated.status is None, updated.message
    assert updated.spec["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] == expected


def test_pools_have_room_for_their_zones_from_1_27_on() -> None:
    small = [worker(maximum=1, zones=["a", "b"])]
    old = stored(submitted(kubernetes__version="1.26.3", provider__workers=small), OLD_VERSIONS)
    refused = update(old, OLD_VERSIONS, kubernetes__version="1.27.1")
    assert refused.fields == {"spec.provider.workers[0].maximum"}
    assert create(submitted(kubernetes__version="1.27.1", provider__workers=small), OLD_VERSIONS).code == 422
