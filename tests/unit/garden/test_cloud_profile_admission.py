"""CloudProfiles: versions, images, bastion, and what stays while Shoots use it."""

import copy
from typing import Any

import pytest

from gardener.api import garden as resources
from kit.garden_objects import shoot
from kit.objects import obj
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.cloud_profile import CLOUD_PROFILE

PAST, FUTURE = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"

MACHINE_TYPE = {"name": "small", "cpu": "2", "gpu": "0", "memory": "4Gi"}


def versions(*texts: str, **more: Any) -> list[Object]:
    return [{"version": text, **more} for text in texts]


def profile(**changes: Any) -> Object:
    spec: Object = {
        "type": "local",
        "kubernetes": {"versions": versions("1.29.4", "1.30.1", "1.30.5")},
        "machineImages": [{"name": "linux", "versions": versions("5.1.0", "5.2.1")}],
        "machineTypes": [MACHINE_TYPE],
        "regions": [{"name": "r"}],
    }
    return {"metadata": {"name": "p"}, "spec": spec | changes}


def stored(**changes: Any) -> Object:
    created = Asked(CLOUD_PROFILE).create(profile(**changes))
    assert created.status is None, created.message
    return created.object


def user(name: str = "s", *, profile: str = "p", kind: str = "CloudProfile", pool: Object | None = None) -> Object:
    image = {"machine": {"type": "small", "image": {"name": "linux", "version": "5.2.1"}}}
    return shoot(
        f"garden-dev/{name}",
        cloudProfile={"kind": kind, "name": profile},
        kubernetes={"version": "1.30.1"},
        provider={"workers": [{"name": "w", **image, **(pool or {})}]},
    )


def child(**spec: Any) -> Object:
    parent = {"parent": {"kind": "CloudProfile", "name": "p"}}
    return obj(resources.NAMESPACED_CLOUD_PROFILES, "garden-dev/n", spec={**parent, **spec})


def test_the_label_of_the_provider_follows_its_type() -> None:
    old = stored()
    assert old["metadata"]["labels"] == {"provider.extensions.gardener.cloud/local": "true"}
    new = {**old, "spec": {**old["spec"], "type": "other"}}
    labels = Asked(CLOUD_PROFILE).update(old, new).object["metadata"]["labels"]
    assert labels == {"provider.extensions.gardener.cloud/other": "true"}


def test_a_new_profile_has_no_expired_versions() -> None:
    spec = stored(
        kubernetes={"versions": [*versions("1.29.4", expirationDate=PAST), *versions("1.30.5")]},
        machineImages=[{"name": "linux", "versions": [*versions("1", expirationDate=PAST), *versions("2")]}],
    )["spec"]
    assert [each["version"] for each in spec["kubernetes"]["versions"]] == ["1.30.5"]
    assert [each["version"] for each in spec["machineImages"][0]["versions"]] == ["2"]


def test_versions_may_expire_in_a_profile_that_exists() -> None:
    old = stored()
    new = copy.deepcopy(old)
    new["spec"]["kubernetes"]["versions"][0]["expirationDate"] = PAST
    assert Asked(CLOUD_PROFILE).update(old, new).spec == new["spec"]


SUPPORTED = {"classification": "supported"}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (
            {"kubernetes": {"versions": [*versions("1.9.1"), *versions("1.10.0", expirationDate=FUTURE)]}},
            {"spec.kubernetes.versions[].expirationDate"},
        ),
        (
            {"kubernetes": {"versions": versions("1.30.1", "1.30.2", **SUPPORTED)}},
            {"spec.kubernetes.versions[0]", "spec.kubernetes.versions[1]"},
        ),
        (
            {"machineImages": [{"name": "a", "versions": versions("1.2.3", "1.3.0", "1.2.4", **SUPPORTED)}]},
            {"spec.machineImages[0].versions[0]", "spec.machineImages[0].versions[2]"},
        ),
        (
            {"machineImages": [{"name": "a", "versions": versions("latest")}]},
            {"spec.machineImages[0].versions[0].version"},
        ),
        (
            {"machineImages": [{"name": "a", "versions": versions("1", kubeletVersionConstraint="> new")}]},
            {"spec.machineImages[0].versions[0].kubeletVersionConstraint"},
        ),
        ({"caBundle": "no certificate"}, {"spec.caBundle"}),
        ({"seedSelector": {"matchLabels": {"a b": "c"}}}, {"spec.seedSelector.matchLabels"}),
        ({"regions": [{"name": "r", "labels": {"a": "b c"}}]}, {"spec.regions[0].labels"}),
        (
            {
                "machineTypes": [
                    {**MACHINE_TYPE, "storage": {"class": "a", "type": "b", "size": "1Gi", "minSize": "1Gi"}}
                ]
            },
            {"spec.machineTypes[0].storage"},
        ),
        (
            {"machineTypes": [{**MACHINE_TYPE, "storage": {"class": "a", "type": "b"}}]},
            {"spec.machineTypes[0].storage"},
        ),
        (
            {"machineImages": [{"name": "a", "versions": versions("1", cri=[{"name": "containerd"}] * 2)}]},
            {"spec.machineImages[0].versions[0].cri[1].name"},
        ),
        (
            {
                "machineImages": [
                    {
                        "name": "a",
                        "versions": versions(
                            "1", cri=[{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}] * 2}]
                        ),
                    }
                ]
            },
            {"spec.machineImages[0].versions[0].cri[0].containerRuntimes[1].type"},
        ),
        ({"bastion": {}}, {"spec.bastion"}),
        ({"bastion": {"machineType": {"name": "huge"}}}, {"spec.bastion.machineType.name"}),
        ({"bastion": {"machineImage": {"name": "other"}}}, {"spec.bastion.machineImage.name"}),
        (
            {"bastion": {"machineImage": {"name": "linux", "version": "9"}, "machineType": {"name": "huge"}}},
            {"spec.bastion.machineImage.version", "spec.bastion.machineType.name"},
        ),
        (
            {
                "machineImages": [{"name": "arm", "versions": [{"version": "1", "architectures": ["arm64"]}]}],
                "bastion": {"machineImage": {"name": "arm"}, "machineType": {"name": "small"}},
            },
            {"spec.bastion.machineImage.name"},
        ),
        (
            {
                "machineImages": [{"name": "new", "versions": versions("1", classification="preview")}],
                "bastion": {"machineImage": {"name": "new", "version": "1"}},
            },
            {"spec.bastion.machineImage.version"},
        ),
    ],
)
def test_what_is_wrong_is_reported_all_at_once(changes: Object, fields: set[str]) -> None:
    refused = Asked(CLOUD_PROFILE).create(profile(**changes))
    assert (refused.code, refused.fields) == (422, fields), refused.message


def test_a_bundle_that_is_refused_is_not_shown() -> None:
    assert "secret" not in Asked(CLOUD_PROFILE).create(profile(caBundle="secret")).message


WITHOUT_KUBERNETES = {"kubernetes": {"versions": versions("1.29.4", "1.30.5")}}
WITHOUT_IMAGE = {"machineImages": [{"name": "linux", "versions": versions("5.1.0")}]}
KUBERNETES = 'unable to delete Kubernetes version "1.30.1" from CloudProfile "p" - version is still in use by '
IMAGE = """unable to delete Machine image version 'linux/5.2.1' from CloudProfile "p" - version is still in use by """
DYING = {"deletionTimestamp": FUTURE, "finalizers": ["gardener"]}


@pytest.mark.parametrize(
    ("garden", "changes", "reasons"),
    [
        ([user()], WITHOUT_KUBERNETES, [f"{KUBERNETES}shoot 'garden-dev/s'"]),
        ([user()], WITHOUT_IMAGE, [f"{IMAGE}shoot 'garden-dev/s' by worker \"w\""]),
        ([child(), user(kind="NamespacedCloudProfile", profile="n")], WITHOUT_IMAGE, [f"{IMAGE}shoot 'garden-dev/s'"]),
        (
            [child(kubernetes={"versions": versions("1.30.1", expirationDate=FUTURE)})],
            WITHOUT_KUBERNETES,
            [f"{KUBERNETES}NamespacedCloudProfile 'garden-dev/n'"],
        ),
        (
            [child(machineImages=[{"name": "linux", "versions": versions("5.2.1", expirationDate=FUTURE)}])],
            WITHOUT_IMAGE,
            [f"{IMAGE}NamespacedCloudProfile 'garden-dev/n'"],
        ),
        (
            [user("a"), user("b")],
            WITHOUT_KUBERNETES | WITHOUT_IMAGE,
            [f"{what}shoot 'garden-dev/{name}'" for what in (KUBERNETES, IMAGE) for name in "ab"],
        ),
        ([user(profile="other")], WITHOUT_KUBERNETES | WITHOUT_IMAGE, []),
        ([{**user(), "metadata": {**user()["metadata"], **DYING}}], WITHOUT_KUBERNETES, []),
    ],
)
def test_a_version_in_use_is_not_removed(garden: list[Object], changes: Object, reasons: list[str]) -> None:
    old = stored()
    outcome = Asked(CLOUD_PROFILE, garden=garden).update(old, {**old, "spec": {**old["spec"], **changes}})
    assert outcome.code == (403 if reasons else 200)
    assert [text for text in reasons if text not in outcome.message] == []


def test_a_profile_in_deletion_may_lose_what_is_used() -> None:
    old = stored()
    old["metadata"] |= DYING
    new = {**old, "spec": {**old["spec"], **WITHOUT_KUBERNETES}}
    assert Asked(CLOUD_PROFILE, garden=[user()]).update(old, new).status is None


def test_a_profile_of_a_megabyte_is_stored_as_it_is() -> None:
    defaults = {"cri": [{"name": "containerd"}], "architectures": ["amd64"]}
    images = [
        {
            "name": f"i{i}",
            "updateStrategy": "major",
            "versions": [{"version": f"{j}.{i}.0", **defaults} for j in range(50)],
        }
        for i in range(10)
    ]
    types = [{**MACHINE_TYPE, "name": f"m{i}", "usable": True, "architecture": "amd64"} for i in range(1500)]
    sent = profile(machineImages=images, machineTypes=types, providerConfig={"large": ["x" * 1000] * 700})
    assert Asked(CLOUD_PROFILE).create(sent).spec == sent["spec"]
