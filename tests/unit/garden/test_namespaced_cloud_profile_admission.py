"""NamespacedCloudProfiles: what a project may change of its parent, and the profile that comes of it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.api import garden as resources
from gardener.garden import profiles
from kit.garden_objects import shoot
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.kinds.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE

PAST, EARLIER, FUTURE = "2020-02-02T00:00:00Z", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
MACHINE_TYPE = {"name": "small", "cpu": "2", "gpu": "0", "memory": "4Gi"}


def versions(*texts: str, **more: str) -> list[Object]:
    return [{"version": text, **more} for text in texts]


def parent(**changes: Any) -> Object:
    resource = resources.CLOUD_PROFILES
    spec: Object = {
        "type": "local",
        "kubernetes": {"versions": versions("1.29.4", "1.30.1", "1.30.5")},
        "machineImages": [{"name": "linux", "versions": versions("5.1.0", "5.2.1")}],
        "machineTypes": [MACHINE_TYPE],
        "volumeTypes": [{"name": "std", "class": "standard"}],
        "regions": [{"name": "r"}],
    }
    meta = {"name": "p"}
    return {**resource.type_meta, "metadata": meta, "spec": spec | changes}


def own(**spec: Any) -> Object:
    return {"metadata": {"name": "n"}, "spec": {"parent": {"kind": "CloudProfile", "name": "p"}, **spec}}


def user() -> Object:
    image = {"type": "small", "image": {"name": "linux", "version": "5.1.0"}}
    return shoot(
        cloudProfile={"kind": "NamespacedCloudProfile", "name": "n"},
        kubernetes={"version": "1.29.4"},
        provider={"workers": [{"name": "w", "machine": image}]},
    )


def kubernetes(*texts: str, date: str = FUTURE) -> Object:
    return {"kubernetes": {"versions": versions(*texts, expirationDate=date)}}


def images(version: str = "5.1.0", name: str = "linux", **more: Any) -> Object:
    return {"machineImages": [{"name": name, "versions": versions(version, **{"expirationDate": FUTURE, **more})}]}


def stored(**spec: Any) -> Object:
    created = Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent()]).create(own(**spec))
    assert created.status is None, created.message
    return created.object


def test_a_new_profile_has_no_expired_versions_and_no_images_that_have_lost_all() -> None:
    spec = stored(
        kubernetes={"versions": [*versions("1.29.4", expirationDate=PAST), *versions("1.30.1", expirationDate=FUTURE)]},
        machineImages=[{"name": "linux", "versions": versions("5.1.0", expirationDate=PAST)}],
    )["spec"]
    assert spec["kubernetes"]["versions"] == versions("1.30.1", expirationDate=FUTURE)
    assert spec["machineImages"] == []


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (kubernetes("1.28.0"), {"spec.kubernetes.versions[0].version"}),
        ({"kubernetes": {"versions": versions("1.29.4")}}, {"spec.kubernetes.versions[0].expirationDate"}),
        (kubernetes("1.30.5"), {"status.cloudProfileSpec.kubernetes.versions[].expirationDate"}),
        (images("5.1.0", "other"), {"spec.machineImages[0].name"}),
        (images("9"), {"spec.machineImages[0].versions[0].version"}),
        ({"caBundle": "no certificate"}, {"spec.caBundle", "status.cloudProfileSpec.caBundle"}),
        ({"machineTypes": [MACHINE_TYPE]}, {"spec.machineTypes[0].name"}),
        ({"volumeTypes": [{"name": "std", "class": "standard"}]}, {"spec.volumeTypes[0].name"}),
        (
            kubernetes("1.28.0") | images("9"),
            {
                "spec.kubernetes.versions[0].version",
                "spec.machineImages[0].versions[0].version",
            },
        ),
        (images(classification="preview"), {"spec.machineImages[0].versions[0].classification"}),
        (images(cri=[{"name": "containerd"}]), {"spec.machineImages[0].versions[0].cri"}),
        (images(architectures=["amd64"]), {"spec.machineImages[0].versions[0].architectures"}),
        (images(kubeletVersionConstraint="*"), {"spec.machineImages[0].versions[0].kubeletVersionConstraint"}),
        (
            {"machineImages": [{**images()["machineImages"][0], "updateStrategy": "minor"}]},
            {"spec.machineImages[0].updateStrategy"},
        ),
        (
            {"kubernetes": {"versions": versions("1.29.4", expirationDate=FUTURE, classification="preview")}},
            {"spec.kubernetes.versions[0].classification"},
        ),
    ],
)
def test_what_is_wrong_is_reported_all_at_once(spec: Object, fields: set[str]) -> None:
    refused = Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent()]).create(own(**spec))
    assert (refused.code, refused.fields) == (422, fields), refused.message


def test_the_parent_exists() -> None:
    assert 'cloudprofiles.core.gardener.cloud "p" not found' in Asked(NAMESPACED_CLOUD_PROFILE).create(own()).message


def test_what_is_wrong_with_the_parent_does_not_count_here() -> None:
    odd = parent(kubernetes={"versions": versions("1.29.4", "1.30.5", expirationDate=FUTURE)})
    assert Asked(NAMESPACED_CLOUD_PROFILE, garden=[odd]).create(own(**kubernetes("1.29.4"))).status is None


def test_a_machine_type_that_the_parent_has_got_later_may_stay() -> None:
    old = stored(machineTypes=[{**MACHINE_TYPE, "name": "big"}])
    later = [parent(machineTypes=[MACHINE_TYPE, {**MACHINE_TYPE, "name": "big"}])]
    new = copy.deepcopy(old)
    new["spec"]["machineTypes"][0]["memory"] = "8Gi"
    assert Asked(NAMESPACED_CLOUD_PROFILE, garden=later).update(old, new).status is None


@pytest.mark.parametrize(
    ("status", "date", "code"),
    [
        ({}, PAST, 422),
        ({"cloudProfileSpec": parent(**kubernetes("1.29.4", date=PAST))["spec"]}, PAST, 200),
        ({"cloudProfileSpec": parent(**kubernetes("1.29.4", date=EARLIER))["spec"]}, PAST, 422),
        ({}, FUTURE, 200),
    ],
)
def test_a_version_can_only_be_expired_as_it_is_already(status: Object, date: str, code: int) -> None:
    old = {**stored(), "status": status}
    new = {**old, "spec": {**old["spec"], **kubernetes("1.29.4", date=date)}}
    requested = Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent()])
    assert requested.update(old, new).code == code


def test_a_date_that_has_passed_does_not_refuse_another_change() -> None:
    old = stored()
    old["spec"] |= kubernetes("1.29.4", date=PAST)
    new = {**old, "spec": {**old["spec"], **images()}}
    assert Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent()]).update(old, new).status is None


EXPIRED = {
    "kubernetes": {"versions": [*versions("1.29.4", expirationDate=PAST), *versions("1.30.5")]},
    "machineImages": [{"name": "linux", "versions": versions("5.1.0", expirationDate=PAST)}],
}


@pytest.mark.parametrize(
    ("of_parent", "reasons"),
    [
        (EXPIRED, ['Kubernetes version "1.29.4"', "Machine image version 'linux/5.1.0'"]),
        ({}, []),
    ],
)
def test_a_longer_life_that_a_shoot_needs_is_not_taken_away(of_parent: Object, reasons: list[str]) -> None:
    old = stored(**kubernetes("1.29.4"), **images())
    new = {**old, "spec": {"parent": old["spec"]["parent"]}}
    refused = Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent(**of_parent), user()]).update(old, new)
    assert refused.code == (403 if reasons else 200)
    assert [
        text for text in reasons if f'unable to delete {text} from NamespacedCloudProfile "n"' not in refused.message
    ] == []
    assert Asked(NAMESPACED_CLOUD_PROFILE, garden=[parent(**of_parent)]).update(old, new).status is None


@pytest.mark.parametrize(
    ("spec", "verb", "field"),
    [
        (kubernetes("1.29.4"), "modify-spec-kubernetes", "kubernetes"),
        (images(), "modify-spec-machineimages", "machineImages"),
    ],
)
def test_longer_lives_take_a_right(spec: Object, verb: str, field: str) -> None:
    denied = [f"{verb} namespacedcloudprofiles"]
    refused = Asked(NAMESPACED_CLOUD_PROFILE, user="bob", garden=[parent()], denied=denied).create(own(**spec))
    assert refused.code == 403
    assert f'user "bob" is not allowed to modify .spec.{field} for "namespacedcloudprofiles"' in refused.message
    old = stored(**spec)
    other = {**old, "spec": {**old["spec"], "volumeTypes": [{"name": "v", "class": "standard"}]}}
    assert (
        Asked(NAMESPACED_CLOUD_PROFILE, user="bob", garden=[parent()], denied=denied).update(old, other).status is None
    )


# --- the profile that comes of it


def test_a_merged_profile_is_the_parent_with_dates_and_additions() -> None:
    spec = parent()["spec"] | {"caBundle": "one"}
    big = {**MACHINE_TYPE, "name": "big"}
    ssd = {"name": "ssd", "class": "premium"}
    changes = (
        kubernetes("1.29.4", "9.9.9") | images() | {"machineTypes": [big], "volumeTypes": [ssd], "caBundle": "two"}
    )
    assert profiles.merged(spec, changes) == {
        **spec,
        "kubernetes": {"versions": [*versions("1.29.4", expirationDate=FUTURE), *versions("1.30.1", "1.30.5")]},
        "machineImages": [
            {"name": "linux", "versions": [*versions("5.1.0", expirationDate=FUTURE), *versions("5.2.1")]}
        ],
        "machineTypes": [MACHINE_TYPE, big],
        "volumeTypes": [*spec["volumeTypes"], ssd],
        "caBundle": "one\ntwo",
    }


NAMES = st.sampled_from("abcd")
ENTRIES = st.lists(st.builds(lambda name, cpu: {"name": name, "cpu": cpu}, NAMES, st.integers(0, 3)), max_size=4)


@given(ENTRIES, ENTRIES)
def test_types_are_replaced_by_name_in_the_order_of_the_parent(parents: list[Object], others: list[Object]) -> None:
    found = profiles.merged({"machineTypes": parents}, {"machineTypes": others}).get("machineTypes", [])
    last = {entry["name"]: entry for entry in [*parents, *others]}
    assert found == list(last.values())


@given(st.dictionaries(st.sampled_from(["1.1.1", "1.1.2", "2.0.0"]), st.none() | st.just(FUTURE)))
def test_merging_changes_nothing_but_dates_and_never_its_arguments(dates: dict[str, str | None]) -> None:
    spec = {"kubernetes": {"versions": versions("1.1.1", "1.1.2", classification="preview")}}
    before = copy.deepcopy(spec)
    changes = {"kubernetes": {"versions": [{"version": text, "expirationDate": date} for text, date in dates.items()]}}
    found = profiles.merged(spec, changes)["kubernetes"]["versions"]
    assert spec == before
    assert [{name: entry[name] for name in ("version", "classification")} for entry in found] == before["kubernetes"][
        "versions"
    ]
