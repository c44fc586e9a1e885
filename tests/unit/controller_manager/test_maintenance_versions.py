"""Which versions of Kubernetes and of machine images follow."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden import machine_images
from gardener.garden.maintenance import images
from gardener.garden.maintenance.choice import choose
from gardener.garden.maintenance.images import Kubelet
from gardener.garden.maintenance.updates import Update
from gardener.garden.versions import parse_version
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2024, 1, 16, 12, tzinfo=UTC)
PAST, FUTURE = format_time(NOW - timedelta(hours=1)), format_time(NOW + timedelta(hours=1))
MISSING = "Version does not exist in CloudProfile"


def offered(listed: str) -> list[Object]:
    """`1.29.3! 1.29.5? 1.30.1~`: expired, a preview, deprecated; `1.31.0+` expires later."""
    return [_version(each) for each in listed.split()]


def _version(written: str) -> Object:
    marks: dict[str, Object] = {
        "!": {"expirationDate": PAST},
        "+": {"expirationDate": FUTURE},
        "?": {"classification": "preview"},
        "~": {"classification": "deprecated"},
        "=": {"classification": "supported"},
    }
    version = written.rstrip("!+?~=")
    found: Object = {"version": version}
    for mark in written[len(version) :]:
        found |= marks[mark]
    return found


# --- Kubernetes

EXPIRED = "Kubernetes version expired - force update required"
AUTOMATIC = "Automatic update of Kubernetes version configured"


def control_plane(current: str, versions: list[Object], *, auto: bool, pool: str = "") -> tuple[str, Update | None]:
    """With a version of a pool: what becomes of that one."""
    spec = {
        "kubernetes": {"version": current},
        "maintenance": {"autoUpdate": {"kubernetesVersion": auto}},
        "provider": {"workers": [{"name": "w", "kubernetes": {"version": pool}}] if pool else []},
    }
    found = choose(spec, {"kubernetes": {"versions": versions}}, now=NOW)
    return (found.pools[0].version, found.pools[0].kubernetes) if pool else (found.control_plane, found.update)


@pytest.mark.parametrize(
    ("current", "profile", "auto", "target", "reason"),
    [
        # Nothing requests it.
        ("1.29.3", "1.29.3 1.29.4 1.30.1", False, None, ""),
        ("1.29.3", "1.29.3+ 1.29.4", False, None, ""),
        # As the user wants it: patch versions only.
        ("1.29.3", "1.29.3 1.29.4 1.29.5 1.30.1", True, "1.29.5", AUTOMATIC),
        ("1.29.3", "1.29.2 1.29.3 1.30.1", True, None, ""),
        ("1.29.3", "1.29.3 1.29.5? 1.29.4", True, "1.29.4", AUTOMATIC),
        ("1.29.3", "1.29.3 1.29.5! 1.29.4", True, "1.29.4", AUTOMATIC),
        ("1.29.3", "1.29.3 1.29.5~ 1.29.4=", True, "1.29.4", AUTOMATIC),
        ("1.29.3", "1.29.3 1.29.5~ 1.29.4~", True, "1.29.5", AUTOMATIC),
        ("1.29.3", "1.29.3 1.29.5!~ 1.29.4!", True, None, ""),
        ("1.29.9", "1.29.9 1.29.10", True, "1.29.10", AUTOMATIC),
        ("1.29.3", "1.29.3 2.29.4", True, None, ""),
        # It must not be used any more.
        ("1.29.3", "1.29.3! 1.29.5? 1.30.1! 1.31.0", False, "1.30.1", EXPIRED),
        ("1.29.3", "1.29.3! 1.29.4 1.30.1 1.31.0", False, "1.29.4", EXPIRED),
        ("1.29.3", "1.29.3! 1.29.4~ 1.30.1", False, "1.29.4", EXPIRED),
        ("1.29.3", "1.29.3! 1.29.4! 1.30.1 1.30.2", True, "1.30.2", EXPIRED),
        ("1.29.3", "1.29.3! 1.30.1 1.30.2! 1.30.3?", False, "1.30.1", EXPIRED),
        ("1.29.3", "1.29.3! 1.30.1~ 1.30.2~", False, "1.30.2", EXPIRED),
        ("1.29.3", "1.29.4 1.30.1", False, "1.29.4", MISSING),
        ("1.29.3", "1.30.1", True, "1.30.1", MISSING),
    ],
)
def test_the_version_of_kubernetes_that_follows(
    current: str, profile: str, auto: bool, target: str | None, reason: str
) -> None:
    found, update = control_plane(current, offered(profile), auto=auto)
    if target is None:
        assert (found, update) == (current, None)
    else:
        assert found == target
        assert update is not None
        assert update.succeeded
        assert update.description == f'Updated Kubernetes version from "{current}" to "{target}"'
        assert update.reason == reason


@pytest.mark.parametrize(
    ("current", "profile"),
    [
        ("1.29.3", "1.29.3! 1.31.0"),
        ("1.29.3", "1.29.3! 1.30.1? 1.31.0"),
        ("1.29.3", "1.28.9 2.0.0"),
        ("1.29.3", ""),
        ("nonsense", "1.29.3"),
    ],
)
def test_no_version_of_kubernetes_follows(current: str, profile: str) -> None:
    found, update = control_plane(current, offered(profile), auto=False)
    assert found == current
    assert update is not None
    assert not update.succeeded
    assert update.description == (
        f'could not determine higher suitable version than "{current}": cannot perform forceful update of expired '
        f'version "{current}". No suitable version found in CloudProfile - this is most likely a misconfiguration of '
        "the CloudProfile"
    )


@pytest.mark.parametrize(
    ("current", "most", "target"),
    [
        ("1.29.3", "1.30.1", "1.30.1"),
        ("1.29.3", "1.31.0", "1.30.2"),
        ("1.29.3", "1.28.0", None),
    ],
)
def test_a_pool_is_never_ahead_of_its_control_plane(current: str, most: str, target: str | None) -> None:
    profile = " ".join(dict.fromkeys(("1.29.3!", "1.30.1", "1.30.2", most)))
    found, update = control_plane(most, offered(profile), auto=False, pool=current)
    assert found == (target or current)
    assert (update is None) is (target is None)


# --- machine images

ALL = "5.1.0 5.1.3 5.2.0 5.3.1 6.0.0 6.1.0 8.0.0"
ALL_EXPIRED = "5.1.0! 5.1.3! 5.2.0! 5.3.1! 6.0.0! 6.1.0! 8.0.0!"
FORCED = "Machine image version expired - force update required (image update strategy: {})"
WANTED = "Automatic update of the machine image version is configured (image update strategy: {})"


def pool(version: str, **machine: Any) -> Object:
    return {"name": "w", "machine": {"image": {"name": "os", "version": version}, **machine}}


def updated(current: str, versions: list[Object], strategy: str, *, auto: bool) -> tuple[str, str, str]:
    image: Object = {"name": "os", "versions": versions, **({"updateStrategy": strategy} if strategy else {})}
    kubelet = Kubelet(parse_version("1.29.3"), parse_version("1.29.3"))
    target, update, _ = images.choose(pool(current), [{"name": "other"}, image], kubelet=kubelet, auto=auto, now=NOW)
    if update is None:
        assert target == current
        return "", "", ""
    if update.succeeded:
        assert update.description == f'Updated machine image "os" from "{current}" to "{target}"'
        return target, "", update.reason
    assert target == current
    return "", update.description, update.reason


@pytest.mark.parametrize(
    ("strategy", "current", "profile", "target"),
    [
        # A higher patch version suits all.
        *((strategy, "5.1.0", ALL, "5.1.3") for strategy in ("patch", "minor", "major", "")),
        *((strategy, "5.1.0", "5.1.0 5.1.3~ 5.2.0", "5.1.3") for strategy in ("patch", "minor", "major")),
        *((strategy, "8.0.0", ALL, "") for strategy in ("patch", "minor", "major")),
        ("patch", "5.1.3", ALL, ""),
        ("minor", "5.1.3", ALL, "5.3.1"),
        ("major", "5.1.3", ALL, "8.0.0"),
        ("", "5.1.3", ALL, "8.0.0"),
        ("minor", "5.3.1", ALL, ""),
        ("major", "5.3.1", ALL, "8.0.0"),
        ("patch", "5.1.0", "5.1.0 7.0.0", ""),
        ("minor", "5.1.0", "5.1.0 7.0.0", ""),
        ("major", "5.1.0", "5.1.0 7.0.0", "7.0.0"),
        # Neither previews nor what has expired, and what is deprecated only if there is nothing else.
        ("patch", "5.1.0", "5.1.0 5.1.3? 5.2.0~ 5.2.1", ""),
        ("patch", "5.1.0", "5.1.0 5.1.2 5.1.3! 5.1.4?", "5.1.2"),
        ("minor", "5.1.0", "5.1.0 5.2.0 5.3.0~", "5.2.0"),
        ("minor", "5.1.0", "5.1.0 5.2.0~ 5.3.0~", "5.3.0"),
        ("major", "5.1.0", "5.1.0 6.0.0 7.0.0! 8.0.0?", "6.0.0"),
    ],
)
def test_an_image_is_updated_as_the_user_wants_it(strategy: str, current: str, profile: str, target: str) -> None:
    expected = (target, "", WANTED.format(strategy or "major")) if target else ("", "", "")
    assert updated(current, offered(profile), strategy, auto=True) == expected


@pytest.mark.parametrize(
    ("strategy", "current", "profile", "target"),
    [
        ("minor", "1.1.0", "1.1.0! 1.2.0! 2.0.0", "2.0.0"),
        ("patch", "1.1.0", "1.1.0! 1.2.0! 2.0.0", "1.2.0"),
        ("major", "1.1.0", "1.1.0! 1.2.0! 2.0.0", "2.0.0"),
        *((strategy, "5.1.0", "5.1.0! 5.1.3 5.2.0 6.0.0", "5.1.3") for strategy in ("patch", "minor", "major")),
        # The next minor version that there is, expired or not, unless all of it are previews.
        ("patch", "5.1.0", "5.1.0! 5.3.0 5.3.1 5.4.0", "5.3.1"),
        ("patch", "5.1.0", "5.1.0! 5.3.0 5.3.1! 5.4.0", "5.3.0"),
        ("patch", "5.1.0", "5.1.0! 5.3.0! 5.3.1! 5.4.0", "5.3.1"),
        ("patch", "5.1.0", "5.1.0! 5.3.0? 5.4.0", "5.4.0"),
        ("patch", "5.1.0", "5.1.0! 5.3.0? 5.3.1! 5.4.0", "5.3.1"),
        ("patch", "5.1.0", "5.1.0! 5.2.0~ 5.3.0", "5.2.0"),
        # The next major version.
        ("minor", "5.1.0", "5.1.0! 5.2.0! 6.0.0! 8.0.0", "6.0.0"),
        ("minor", "5.1.0", "5.1.0! 6.0.0 6.1.0 8.0.0", "6.1.0"),
        ("minor", "5.1.0", "5.1.0! 5.4.0 6.0.0", "5.4.0"),
        ("minor", "5.1.0", "5.1.0! 6.0.0? 8.0.0", "8.0.0"),
        ("major", "5.1.0", "5.1.0! 6.0.0! 8.0.0", "8.0.0"),
    ],
)
def test_an_image_that_has_expired_is_updated(strategy: str, current: str, profile: str, target: str) -> None:
    assert updated(current, offered(profile), strategy, auto=False) == (target, "", FORCED.format(strategy))


MISCONFIGURED = (
    'cannot perform forceful update of expired version "{}". No suitable version found in CloudProfile - this is most '
    "likely a misconfiguration of the CloudProfile"
)
END_OF_LIFE = (
    'failed to determine version for forceful update: either the machine image "os" is reaching end of life and '
    "migration to another machine image is required or there is a misconfiguration in the CloudProfile. If it is the "
    "latter, make sure the machine image in the CloudProfile has at least one version that is not expired, not in "
    'preview and greater or equal to the current Shoot image version "{}"'
)


@pytest.mark.parametrize(
    ("strategy", "current", "profile", "why"),
    [
        ("patch", "8.0.0", ALL_EXPIRED, MISCONFIGURED),
        ("minor", "8.0.0", ALL_EXPIRED, MISCONFIGURED),
        ("major", "8.0.0", ALL_EXPIRED, END_OF_LIFE),
        # Others belong to another major version.
        ("patch", "5.1.0", "5.1.0! 6.2.0", MISCONFIGURED),
        ("patch", "5.1.0", "5.1.0! 5.2.0?", MISCONFIGURED),
        ("minor", "5.1.0", "5.1.0! 5.2.0!", MISCONFIGURED),
        ("major", "5.1.0", "5.1.0! 6.0.0!", END_OF_LIFE),
    ],
)
def test_an_image_that_has_expired_can_not_be_updated(strategy: str, current: str, profile: str, why: str) -> None:
    reason = (
        'failed to update machine image "os": failed to determine the target version for maintenance of machine image '
        f'"os" with strategy "{strategy}": {why.format(current)}'
    )
    assert updated(current, offered(profile), strategy, auto=False) == ("", reason, FORCED.format(strategy))


def test_an_image_version_that_is_not_in_the_profile_any_more_is_updated() -> None:
    assert updated("5.1.1", offered("5.1.0 5.1.3"), "patch", auto=False) == ("5.1.3", "", MISSING)


def test_an_image_that_is_not_in_the_profile_can_not_be_updated() -> None:
    target, update, _ = images.choose(
        pool("5.1.0"), [{"name": "other"}], kubelet=Kubelet(None, None), auto=False, now=NOW
    )
    why = 'failed to update machine image "os": machine image "os" is not in the CloudProfile'
    assert (target, update) == ("5.1.0", Update(why, MISSING, succeeded=False))


@pytest.mark.parametrize(
    ("worker", "fields", "suits"),
    [
        ({}, {}, True),
        ({}, {"architectures": ["arm64"]}, False),
        ({"machine": {"architecture": "arm64"}}, {"architectures": ["amd64", "arm64"]}, True),
        ({"machine": {"architecture": "arm64"}}, {}, False),
        ({}, {"cri": [{"name": "docker"}]}, False),
        ({"cri": {"name": "docker"}}, {}, False),
        ({"cri": {"name": "docker"}}, {"cri": [{"name": "docker"}]}, True),
        (
            {"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}},
            {"cri": [{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}, {"type": "kata"}]}]},
            True,
        ),
        (
            {"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}},
            {"cri": [{"name": "containerd", "containerRuntimes": [{"type": "kata"}]}]},
            False,
        ),
        ({"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}}, {}, False),
        ({}, {"kubeletVersionConstraint": "< 1.30"}, True),
        ({}, {"kubeletVersionConstraint": ">= 1.30"}, False),
        ({}, {"kubeletVersionConstraint": "nonsense"}, False),
    ],
)
def test_only_versions_that_a_pool_can_use_count(worker: Object, fields: Object, suits: bool) -> None:
    assert machine_images.suits({"version": "1.0.0", **fields}, worker, parse_version("1.29.3")) is suits


VERSIONS = st.lists(
    st.builds(
        "{}.{}.{}{}".format,
        st.integers(1, 3),
        st.integers(1, 4),
        st.integers(0, 3),
        st.sampled_from(("", "", "!", "?", "~", "!~")),
    ),
    max_size=8,
    unique_by=lambda each: each.rstrip("!?~"),
)


@given(VERSIONS, st.sampled_from(("patch", "minor", "major")), st.booleans())
def test_an_image_never_goes_back_nor_to_a_preview(listed: list[str], strategy: str, auto: bool) -> None:
    versions = offered(" ".join(listed))
    target, _, _ = updated("2.2.1", versions, strategy, auto=auto)
    if target:
        assert _parsed(target) > _parsed("2.2.1")
        assert next(each for each in versions if each["version"] == target).get("classification") != "preview"
        if strategy == "patch":
            assert _parsed(target)[0] == 2


@given(VERSIONS, st.booleans())
def test_kubernetes_never_goes_back_nor_skips_a_minor_version(listed: list[str], auto: bool) -> None:
    target, _ = control_plane("2.2.1", offered(" ".join(listed)), auto=auto)
    assert target == "2.2.1" or (_parsed(target) > _parsed("2.2.1") and _parsed(target)[:2] in {(2, 2), (2, 3)})


def _parsed(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
