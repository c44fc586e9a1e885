"""Shoots: images of machines that a pool gets, may have, and is warned about."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kit.webhooks.shoots import PROFILE, create, stored, submitted, update, with_fields, worker
from kube.clock import format_time
from kube.objects import Object

IMAGE = "spec.provider.workers[0].machine.image.version"
PAST = "2026-01-01T00:00:00Z"
GVISOR = [{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}]


def offering(**images: list[Object]) -> Object:
    """The cloud profile with these images."""
    listed = [{"name": name, "versions": versions} for name, versions in images.items()]
    return with_fields(PROFILE, spec__machineImages=listed)


def version(number: str, *, expired: bool = False, **fields: Any) -> Object:
    return {"version": number, **({"expirationDate": PAST} if expired else {}), **fields}


def having(image: str, number: str, **fields: Any) -> Object:
    return worker(machine__image={"name": image, "version": number}, **fields)


def images_of(obj: Object) -> list[tuple[str, str]]:
    pools = obj["spec"]["provider"]["workers"]
    return [(each["machine"]["image"]["name"], each["machine"]["image"]["version"]) for each in pools]


# --- expired versions

EXPIRED = offering(
    linux=[
        version("1.0.0", expired=True),
        version("1.1.0", expired=True),
        version("1.2.0"),
        version("1.3.0", expired=True),
        version("1.4.0"),
    ],
    other=[version("1.1.0", expired=True), version("9.0.0", expired=True), version("1.0.0")],
)


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        (
            ("linux", "1.2.0"),
            ("linux", "1.1.0"),
            "it expired on 2026-01-01, and is lower than the current version 1.2.0",
        ),
        (
            ("linux", "1.2.0"),
            ("linux", "1.0.0"),
            "it expired on 2026-01-01, and is lower than the current version 1.2.0",
        ),
        # As maintenance does if there is no other.
        (("linux", "1.2.0"), ("linux", "1.3.0"), ""),
        (("linux", "1.0.0"), ("linux", "1.1.0"), ""),
        # What has not expired may be lower.
        (("linux", "1.4.0"), ("linux", "1.2.0"), ""),
        # Versions of different images are not compared.
        (("linux", "1.2.0"), ("other", "1.1.0"), "a version that has not expired for another image"),
        (("linux", "1.2.0"), ("other", "9.0.0"), "a version that has not expired for another image"),
        (("linux", "1.2.0"), ("other", "1.0.0"), ""),
    ],
)
def test_a_pool_goes_to_an_expired_image_only_if_it_is_not_lower(
    before: tuple[str, str], after: tuple[str, str], reported: str
) -> None:
    old = stored(submitted(provider__workers=[having(*before)]), offering(**{before[0]: [version(before[1])]}))
    changed = update(old, EXPIRED, provider__workers=[having(*after)])
    assert (f"{IMAGE}: Invalid value" in changed.message) is bool(reported), changed.message
    assert reported in changed.message


def test_a_pool_keeps_an_expired_image_and_a_new_one_does_not_get_it() -> None:
    valid = offering(linux=[version("1.1.0"), version("1.2.0")])
    old = stored(submitted(provider__workers=[having("linux", "1.1.0")]), valid)
    assert update(old, EXPIRED, purpose="testing").status is None
    assert update(old, EXPIRED, provider__workers=[having("linux", "1.1.0", maximum=3)]).status is None
    more = update(old, EXPIRED, provider__workers=[having("linux", "1.1.0"), having("linux", "1.1.0", name="v")])
    assert 'spec.provider.workers[1].machine.image.version: Unsupported value: "1.1.0"' in more.message
    assert IMAGE not in more.message
    # A pool of another name is another pool, though it has the place of the one before.
    renamed = update(old, EXPIRED, provider__workers=[having("linux", "1.1.0", name="v")])
    assert f'{IMAGE}: Unsupported value: "1.1.0"' in renamed.message
    assert 'supported values: "linux:1.2.0", "linux:1.4.0", "other:1.0.0"' in renamed.message


@pytest.mark.parametrize(
    ("after", "reported"),
    [
        (timedelta(days=-400), "expired on"),
        (timedelta(seconds=-5), "expired on"),
        (timedelta(minutes=5), "expires on"),
        (timedelta(days=13), "expires on"),
        (timedelta(days=15), ""),
    ],
)
def test_a_warning_reports_whether_a_version_has_expired_or_will(after: timedelta, reported: str) -> None:
    date = datetime.now(UTC) + after
    offered = offering(linux=[version("1.1.0", expirationDate=format_time(date))])
    versions = [{"version": "1.30.5", "expirationDate": format_time(date)}, {"version": "1.31.2"}]
    offered["spec"]["kubernetes"] = {"versions": versions}
    before = offering(linux=[version("1.1.0")])
    old = stored(submitted(provider__workers=[having("linux", "1.1.0", kubernetes__version="1.30.5")]), before)
    found = update(old, offered, purpose="testing").warnings
    paths = ("spec.kubernetes.version", "spec.provider.workers[0].kubernetes.version", IMAGE)
    numbers = ("1.30.5", "1.30.5", "1.1.0")
    expected = [
        f"{path}: version {number} {reported} {date:%Y-%m-%d}" for path, number in zip(paths, numbers, strict=True)
    ]
    assert [each for each in found if "expire" in each] == (expected if reported else [])


# --- what a pool gets

SUITED = offering(
    first=[
        version("1.0.0", kubeletVersionConstraint="< 1.30"),
        version("2.0.0", architectures=["arm64"]),
        version("3.0.0", classification="preview"),
        version("4.0.0", cri=[{"name": "docker"}]),
    ],
    second=[
        version("1.0.0"),
        version("1.1.0", kubeletVersionConstraint=">= 1.31"),
        version("1.2.0", architectures=["arm64", "amd64"], cri=GVISOR, kubeletVersionConstraint=">= 1.31"),
        version("1.3.0", expired=True),
    ],
    third=[version("9.0.0", cri=GVISOR, kubeletVersionConstraint="< 1.31")],
    fourth=[version("1.0.0", expired=True)],
)


@pytest.mark.parametrize(
    ("kubernetes", "pool", "image"),
    [
        ("1.29.8", {}, ("first", "1.0.0")),
        ("1.30.5", {}, ("second", "1.0.0")),
        ("1.31.2", {}, ("second", "1.2.0")),
        # The version of the pool, if it has one of its own.
        ("1.31.2", {"kubernetes__version": "1.30.5"}, ("second", "1.0.0")),
        ("1.31.2", {"kubernetes__version": "1.29"}, ("first", "1.0.0")),
        # A short version of Kubernetes is completed before.
        ("1.31", {}, ("second", "1.2.0")),
        ("1.31.2", {"machine__type": "arm", "machine__architecture": "arm64"}, ("first", "2.0.0")),
        ("1.31.2", {"cri": GVISOR[0]}, ("second", "1.2.0")),
        ("1.30.5", {"cri": GVISOR[0]}, ("third", "9.0.0")),
        ("1.30.5", {"machine__image": {"name": "second"}}, ("second", "1.0.0")),
        ("1.30.5", {"machine__image": {"name": "second", "version": ""}}, ("second", "1.0.0")),
    ],
)
def test_a_new_pool_gets_an_image_that_suits_it(kubernetes: str, pool: dict[str, Any], image: tuple[str, str]) -> None:
    created = create(submitted(kubernetes__version=kubernetes, provider__workers=[worker(**pool)]), SUITED)
    assert images_of(created.object) == [image]
    assert "machine.image" not in created.message.replace("machine.image.name", "")


@pytest.mark.parametrize("name", ["first", "fourth"])
def test_a_pool_for_which_an_image_has_no_usable_version_is_refused(name: str) -> None:
    refused = create(submitted(provider__workers=[worker(machine__image={"name": name})]), SUITED)
    assert f"{IMAGE}: Unsupported value" in refused.message
    assert '"second:1.0.0"' in refused.message


def test_a_pool_of_a_profile_without_a_suitable_image_has_to_name_one() -> None:
    refused = create(submitted(), offering(linux=[version("1.0.0", architectures=["arm64"])]))
    assert "spec.provider.workers[0].machine.image: Required value" in refused.message


@pytest.mark.parametrize(
    ("changes", "image"),
    [
        # It stays as it was, but where it does not suit the pool any more.
        ({"kubernetes__version": "1.30.5"}, "1.0.0"),
        ({"kubernetes__version": "1.31.2"}, "1.2.0"),
        ({"kubernetes__version": "1.30.5", "pool": {"cri": GVISOR[0]}}, "1.1.0"),
    ],
)
def test_a_pool_keeps_its_image_as_long_as_it_suits_it(changes: dict[str, Any], image: str) -> None:
    offered = offering(
        linux=[
            version("0.9.0"),
            version("1.0.0", kubeletVersionConstraint="< 1.31"),
            version("1.1.0", cri=GVISOR, kubeletVersionConstraint="< 1.31"),
            version("1.2.0", kubeletVersionConstraint=">= 1.31"),
        ]
    )
    pool = changes.pop("pool", {})
    old = stored(submitted(kubernetes__version="1.30.1", provider__workers=[having("linux", "1.0.0")]), offered)
    images: tuple[dict[str, Any], ...] = ({}, {"machine__image": {"name": "linux"}})
    for written in images:
        changed = update(old, offered, provider__workers=[worker(**pool, **written)], **changes)
        assert "machine.image" not in changed.message
        assert images_of(changed.object) == [("linux", image)]


def test_a_pool_does_not_go_back_to_a_lower_image_by_itself() -> None:
    offered = offering(linux=[version("0.9.0"), version("1.0.0", kubeletVersionConstraint="< 1.31")])
    old = stored(submitted(provider__workers=[having("linux", "1.0.0")]), offered)
    refused = update(old, offered, provider__workers=[worker()], kubernetes__version="1.31.2")
    assert f"{IMAGE}: Forbidden: the image only supports kubelet < 1.31" in refused.message


def test_an_image_that_did_not_suit_before_stays_when_something_else_changes() -> None:
    before = offering(linux=[version("1.0.0"), version("2.0.0")])
    after = offering(linux=[version("1.0.0", kubeletVersionConstraint="< 1.30"), version("2.0.0")])
    old = stored(submitted(provider__workers=[having("linux", "1.0.0")]), before)
    changed = update(old, after, provider__workers=[worker(maximum=3)])
    assert changed.status is None, changed.message
    assert images_of(changed.object) == [("linux", "1.0.0")]


# --- partial versions

PARTIAL = offering(
    linux=[
        version("1.2.0"),
        version("1.2.3"),
        version("1.2.4", classification="deprecated"),
        version("1.2.5", classification="preview"),
        version("1.2.6", expired=True),
        version("1.20.0"),
        version("2.0.1", architectures=["arm64"]),
        version("3", classification="supported"),
        version("3.1.0"),
    ],
    other=[version("1.2.9")],
)


@pytest.mark.parametrize(
    ("given", "whole"),
    [("1.2", "1.2.3"), ("1", "1.20.0"), ("1.2.0", "1.2.0"), ("3", "3"), ("2", None), ("4", None), ("latest", None)],
)
def test_a_partial_version_of_an_image_becomes_the_highest_that_suits(given: str, whole: str | None) -> None:
    created = create(submitted(provider__workers=[having("linux", given)]), PARTIAL)
    if whole is None:
        assert f'{IMAGE}: Unsupported value: "{given}"' in created.message
    else:
        assert created.status is None, created.message
        assert images_of(created.object) == [("linux", whole)]


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [("1.2.0", "1.2", "1.2.3"), ("1.2.4", "1.2", "1.2.4"), ("1.2.3", "1", "1.20.0"), ("1.20.0", "1.2", "1.2.3")],
)
def test_a_partial_version_does_not_lower_that_of_a_pool(before: str, given: str, after: str) -> None:
    old = stored(submitted(provider__workers=[having("linux", before)]), PARTIAL)
    changed = update(old, PARTIAL, provider__workers=[having("linux", given)])
    assert changed.status is None, changed.message
    assert images_of(changed.object) == [("linux", after)]
