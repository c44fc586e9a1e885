"""What maintenance changes in a Shoot, and how it is reported."""

import copy
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.maintenance.bindings import is_new, replacement
from gardener.garden.maintenance.plan import Plan, Restarts, plan
from gardener.garden.maintenance.repairs import (
    NEWEST,
    OLDEST,
    admission_plugins,
    ended_api_versions,
    feature_gates,
    settings,
)
from gardener.garden.maintenance.report import begun, description, ended, failure_reason, messages, refused
from gardener.garden.versions import parse_constraint, parse_version
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Object
from kube.paths import at

NOW = datetime(2024, 1, 16, 12, tzinfo=UTC)
PAST = format_time(NOW - timedelta(hours=1))
OPERATION, PLANNED = "gardener.cloud/operation", "maintenance.gardener.cloud/operation"
NEEDS_RETRY, TASKS = "maintenance.shoot.gardener.cloud/needs-retry-operation", "shoot.gardener.cloud/tasks"
ALWAYS = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"


def worker(name: str = "w", image: str = "5.1.0", **fields: Any) -> Object:
    return {"name": name, "machine": {"image": {"name": "os", "version": image}}, **fields}


def at_version(version: str, *workers: Object, auto: bool = False, state: str = "", **parts: Any) -> Object:
    """Args: parts: `annotations`, and fields of `spec.kubernetes`."""
    return shoot(
        annotations=parts.pop("annotations", {}),
        kubernetes={"version": version, **parts},
        maintenance={"autoUpdate": {"kubernetesVersion": auto, "machineImageVersion": auto}},
        provider={"workers": list(workers)},
        status={"lastOperation": {"type": "Reconcile", "state": state}} if state else {},
    )


def profile(
    *versions: str, expired: str = "", images: tuple[str, ...] = ("5.1.0", "5.2.0"), name: str = "os"
) -> Object:
    entries = [{"version": each, **({"expirationDate": PAST} if each in expired.split() else {})} for each in versions]
    offered = [{"version": each, **({"expirationDate": PAST} if each in expired.split() else {})} for each in images]
    return {"kubernetes": {"versions": entries}, "machineImages": [{"name": name, "versions": offered}]}


def planned(obj: Object, offered: Object, restarts: Restarts | None = None) -> Plan:
    before = copy.deepcopy(obj)
    drawn = plan(obj, offered, now=NOW, restarts=restarts or Restarts())
    assert obj == before
    return drawn


# --- versions, and how they are reported

AUTO = "Reason: Automatic update of Kubernetes version configured"
EXPIRED = "Kubernetes version expired - force update required"
IMAGE_AUTO = "Reason: Automatic update of the machine image version is configured (image update strategy: major)"
IMAGE_EXPIRED = "Machine image version expired - force update required (image update strategy: major)"


def test_control_plane_pools_and_images_are_updated_and_reported_in_this_order() -> None:
    obj = at_version("1.29.3", worker("w"), worker("p", kubernetes={"version": "1.28.1"}), auto=True)
    drawn = planned(obj, profile("1.28.1", "1.28.2", "1.29.3", "1.29.4"))
    assert description(drawn) == (
        "All maintenance operations successful. "
        f'Control Plane: Updated Kubernetes version from "1.29.3" to "1.29.4". {AUTO}, '
        f'Worker pool "p": Updated Kubernetes version from "1.28.1" to "1.28.2". {AUTO}, '
        f'Worker pool "w": Updated machine image "os" from "5.1.0" to "5.2.0". {IMAGE_AUTO}, '
        f'Worker pool "p": Updated machine image "os" from "5.1.0" to "5.2.0". {IMAGE_AUTO}'
    )
    assert failure_reason(drawn) == ""
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.29.4"
    changed = at(drawn.maintained, "spec", "provider", "workers")
    assert [at(each, "machine", "image", "version") for each in changed] == ["5.2.0", "5.2.0"]
    assert [at(each, "kubernetes", "version") for each in changed] == [None, "1.28.2"]
    assert [(each.type, each.reason, each.text) for each in messages(drawn)] == [
        (
            "Normal",
            "KubernetesVersionMaintenance",
            f'Control Plane: Updated Kubernetes version from "1.29.3" to "1.29.4". {AUTO}.',
        ),
        (
            "Normal",
            "KubernetesVersionMaintenance",
            f'Worker pool "p": Updated Kubernetes version from "1.28.1" to "1.28.2". {AUTO}.',
        ),
        (
            "Normal",
            "MachineImageVersionMaintenance",
            f'Worker pool "w": Updated machine image "os" from "5.1.0" to "5.2.0". {IMAGE_AUTO}.',
        ),
        (
            "Normal",
            "MachineImageVersionMaintenance",
            f'Worker pool "p": Updated machine image "os" from "5.1.0" to "5.2.0". {IMAGE_AUTO}.',
        ),
    ]


def test_what_fails_is_reported_and_the_rest_is_done() -> None:
    obj = at_version("1.29.3", worker("w"), worker("p", image="5.2.0", kubernetes={"version": "1.28.1"}))
    drawn = planned(obj, profile("1.28.1", "1.29.3", expired="1.28.1 1.29.3 5.2.0"))
    why = "could not determine higher suitable version than"
    no_image = "failed to update machine image"
    assert begun(drawn, NOW)["state"] == "Failed"
    assert description(drawn) == (
        "(1/3) maintenance operations successful. "
        f"Control Plane: Kubernetes version update failed. Reason for update: {EXPIRED}, "
        f'Worker pool "p": Updated Kubernetes version from "1.28.1" to "1.29.3". Reason: {EXPIRED}, '
        f'Worker pool "p": machine image version maintenance failed. Reason for update: {IMAGE_EXPIRED}'
    )
    control_plane, image = failure_reason(drawn).split(', Worker pool "p": ')
    assert control_plane.startswith(f'Control Plane: Kubernetes maintenance failure due to: {why} "1.29.3": ')
    assert image.startswith(f'{no_image} "os": failed to determine the target version')
    warned = [each.text for each in messages(drawn) if each.type == "Warning"]
    assert warned[0].startswith(
        f"Control Plane: Kubernetes version maintenance failed. Reason for update: {EXPIRED}. Error: {why}"
    )
    assert warned[1].startswith(
        f'Worker pool "p": Machine image version maintenance failed. Reason for update: {IMAGE_EXPIRED}. '
        f"Error: {no_image}"
    )


def test_a_failure_of_a_pool_is_reported() -> None:
    obj = at_version("1.31.0", worker(kubernetes={"version": "1.28.1"}))
    drawn = planned(obj, profile("1.28.1", "1.31.0", expired="1.28.1"))
    assert description(drawn) == (
        "(0/1) maintenance operations successful. "
        f'Worker pool "w": Kubernetes version maintenance failed. Reason for update: {EXPIRED}'
    )
    assert failure_reason(drawn).startswith('Worker pool "w": Kubernetes maintenance failure due to: could not')
    assert [each.text for each in messages(drawn)] == [
        (
            f'Worker pool "w": Kubernetes version maintenance failed. Reason for update: {EXPIRED}. '
            f"Error: {drawn.pools[0][1].description}"
        )
    ]


def test_a_pool_follows_up_to_the_new_version_of_its_control_plane() -> None:
    obj = at_version("1.28.4", worker("p", kubernetes={"version": "1.28.4"}))
    drawn = planned(obj, profile("1.28.4", "1.29.2", "1.29.5", "1.30.1", expired="1.28.4"))
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.29.5"
    assert at(drawn.maintained, "spec", "provider", "workers")[0]["kubernetes"]["version"] == "1.29.5"
    capped = planned(
        at_version("1.29.2", worker("p", kubernetes={"version": "1.28.4"})),
        profile("1.28.4", "1.29.2", "1.29.5", expired="1.28.4"),
    )
    assert at(capped.maintained, "spec", "provider", "workers")[0]["kubernetes"]["version"] == "1.29.2"


def test_an_image_that_the_profile_lacks_is_reported_and_the_rest_is_updated() -> None:
    obj = at_version("1.29.3", worker("w"), worker("p"), auto=True)
    obj["spec"]["provider"]["workers"][1]["machine"]["image"]["name"] = "gone"
    drawn = planned(obj, profile("1.29.3", "1.29.4"))
    assert failure_reason(drawn) == (
        'Worker pool "p": failed to update machine image "gone": machine image "gone" is not in the CloudProfile'
    )
    changed = at(drawn.maintained, "spec", "provider", "workers")
    assert [at(each, "machine", "image") for each in changed] == [
        {"name": "os", "version": "5.2.0"},
        {"name": "gone", "version": "5.1.0"},
    ]
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.29.4"


def test_a_shoot_without_workers_is_maintained() -> None:
    drawn = planned(
        at_version("1.29.3", auto=True), {"kubernetes": {"versions": [{"version": "1.29.3"}, {"version": "1.29.4"}]}}
    )
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.29.4"


def test_nothing_to_do_is_no_change() -> None:
    drawn = planned(at_version("1.29.3", worker()), profile("1.29.3", "1.29.4"))
    assert not drawn.is_change
    assert drawn.maintained["metadata"]["annotations"] == {TASKS: f"{ALWAYS},restartControlPlanePods"}


# --- versions that belong together


def together(kubernetes: str, images: str, **image: Any) -> Object:
    """A profile: `1.30.5! 1.31.1` and `1.0.0<1.31 2.0.0>=1.31!`: expired; kubelets that an image works with."""
    entries = []
    for written in images.split():
        version, expired = written.rstrip("!"), written.endswith("!")
        number = re.split("[<>]", version)[0]
        constraint = version.removeprefix(number)
        entries.append(
            {
                "version": number,
                **({"kubeletVersionConstraint": constraint} if constraint else {}),
                **({"expirationDate": PAST} if expired else {}),
            }
        )
    listed = kubernetes.split()
    offered = profile(*(each.rstrip("!") for each in listed), expired=" ".join(e[:-1] for e in listed if e[-1] == "!"))
    return {**offered, "machineImages": [{"name": "os", "versions": entries, **image}]}


def chosen(drawn: Plan) -> tuple[str, list[str], list[str]]:
    """Of the control plane; of the pools, where they have their own; and of their images."""
    spec = drawn.maintained["spec"]
    pools = at(spec, "provider", "workers")
    own = [at(each, "kubernetes", "version") or "" for each in pools]
    return at(spec, "kubernetes", "version"), own, [at(each, "machine", "image", "version") for each in pools]


@pytest.mark.parametrize(
    ("kubernetes", "images", "auto", "version", "image"),
    [
        # The image of the pool works with the expired version only: another one comes with the new version.
        ("1.30.5! 1.31.1", "1.0.0<1.31 2.0.0>=1.31", True, "1.31.1", "2.0.0"),
        ("1.30.5! 1.31.1", "1.0.0<1.31 2.0.0>=1.31", False, "1.31.1", "2.0.0"),
        # It has expired, too; and what follows works with the new version only.
        ("1.30.5! 1.31.1", "1.0.0<1.31! 2.0.0>=1.31", False, "1.31.1", "2.0.0"),
        ("1.30.5! 1.31.1", "1.0.0! 1.1.0<1.31 2.0.0>=1.31", False, "1.31.1", "2.0.0"),
        # No image is updated to what works with the expired version only.
        ("1.30.5! 1.31.1", "1.0.0 1.1.0<1.31", True, "1.31.1", "1.0.0"),
        # The highest version for which there is an image.
        ("1.30.5! 1.31.1 1.31.2", "1.0.0<1.31 2.0.0<1.31.2", False, "1.31.1", "2.0.0"),
        ("1.30.5! 1.30.6 1.30.7 1.31.1", "1.0.0<1.30.7", False, "1.30.6", "1.0.0"),
        ("1.30.5! 1.30.6 1.31.1", "1.0.0<1.30.6 2.0.0>=1.31", False, "1.31.1", "2.0.0"),
        # An expired version that an image works with, rather than none.
        ("1.30.5! 1.31.1! 1.31.2", "1.0.0<1.31 2.0.0<1.31.2", False, "1.31.1", "2.0.0"),
        # The version that does not leave an expired image behind.
        ("1.30.5! 1.30.6 1.30.7", "1.0.0! 2.0.0<1.30.7", False, "1.30.6", "2.0.0"),
        ("1.30.5! 1.30.6 1.30.7", "1.0.0! 2.0.0<1.30", False, "1.30.7", "1.0.0"),
        # As the user wants it.
        ("1.30.5 1.30.6", "1.0.0<1.30.6 2.0.0>=1.30.6", True, "1.30.6", "2.0.0"),
        ("1.30.5 1.30.6 1.30.7", "1.0.0<1.30.7", True, "1.30.6", "1.0.0"),
    ],
)
def test_versions_of_kubernetes_and_images_are_chosen_together(
    kubernetes: str, images: str, auto: bool, version: str, image: str
) -> None:
    drawn = planned(at_version("1.30.5", worker(image="1.0.0"), auto=auto), together(kubernetes, images))
    assert chosen(drawn) == (version, [""], [image])


def test_an_image_that_comes_with_the_version_of_kubernetes_is_reported_with_the_reason() -> None:
    obj = at_version("1.30.5", worker("one", image="1.0.0"))
    drawn = planned(obj, together("1.30.5! 1.31.1", "1.0.0<1.31 2.0.0>=1.31"))
    assert description(drawn) == (
        "All maintenance operations successful. "
        f'Control Plane: Updated Kubernetes version from "1.30.5" to "1.31.1". Reason: {EXPIRED}, '
        'Worker pool "one": Updated machine image "os" from "1.0.0" to "2.0.0". '
        'Reason: Machine image version "1.0.0" works with kubelet <1.31 only (image update strategy: major)'
    )


@pytest.mark.parametrize(("strategy", "image"), [("patch", ""), ("minor", "2.0.0"), ("major", "3.0.0"), ("", "3.0.0")])
def test_an_image_that_has_to_change_follows_its_strategy(strategy: str, image: str) -> None:
    offered = together("1.30.5! 1.31.1", "1.0.0<1.31 2.0.0 3.0.0", **({"updateStrategy": strategy} if strategy else {}))
    drawn = planned(at_version("1.30.5", worker(image="1.0.0")), offered)
    assert chosen(drawn) == (("1.31.1", [""], [image]) if image else ("1.30.5", [""], ["1.0.0"]))


def test_of_an_update_that_no_version_permits_all_reasons_are_reported() -> None:
    pools = [
        worker("a", image="1.0.0"),
        worker("b", image="1.0.0", cri={"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}),
        worker("c", image="1.1.0"),
        worker("d", image="1.1.0", kubernetes={"version": "1.28.1"}),
    ]
    offered = together("1.28.1 1.31.5! 1.32.1 1.32.2!", "1.0.0<1.32 1.1.0 2.0.0<1.31")
    offered["machineImages"][0]["versions"][0]["cri"] = [
        {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}
    ]
    offered["machineImages"][0]["versions"][1]["architectures"] = ["amd64"]
    for pool in pools[:1]:
        pool["machine"]["architecture"] = "arm64"
    offered["machineImages"][0]["versions"][0]["architectures"] = ["amd64", "arm64"]
    drawn = planned(at_version("1.31.5", *pools), offered)
    assert chosen(drawn)[0] == "1.31.5"
    reason = failure_reason(drawn)
    assert reason.startswith(
        "Control Plane: Kubernetes maintenance failure due to: no higher version of the CloudProfile suits all worker "
        "pools: 1.32.1, 1.32.2: "
    )
    assert (
        'worker pool "a": machine image "os": "1.0.0" works with kubelet <1.32 only, '
        '"1.1.0" is not built for the architecture arm64, '
        '"2.0.0" is not built for the architecture arm64, works with kubelet <1.31 only, '
        'and no version follows by the image update strategy "major"; '
    ) in reason
    assert (
        'worker pool "b": machine image "os": "1.0.0" works with kubelet <1.32 only, '
        '"1.1.0" does not have the container runtime gvisor, '
    ) in reason
    assert 'worker pool "c"' not in reason
    assert 'worker pool "d"' not in reason
    assert reason.endswith(
        "Add versions to the CloudProfile that suit each other, or change the versions, architecture or container "
        "runtimes of the worker pools"
    )


def test_an_image_is_not_changed_for_an_automatic_update_if_its_own_ones_are_off() -> None:
    obj = at_version("1.30.5", worker("w", image="1.0.0"), auto=True)
    obj["spec"]["maintenance"]["autoUpdate"]["machineImageVersion"] = False
    drawn = planned(obj, together("1.30.5 1.30.6", "1.0.0<1.30.6 2.0.0"))
    assert chosen(drawn) == ("1.30.5", [""], ["1.0.0"])
    assert (
        'worker pool "w": machine image "os": "1.0.0" works with kubelet <1.30.6 only, and automatic updates of images '
        "are off (spec.maintenance.autoUpdate.machineImageVersion)"
    ) in failure_reason(drawn)


@pytest.mark.parametrize(
    ("kubernetes", "pool", "version", "own"),
    [
        # A pool may be three minor versions behind.
        ("1.29.1 1.31.3! 1.32.0", "1.29.1", "1.32.0", "1.29.1"),
        ("1.28.2 1.29.1 1.29.2 1.30.1 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.29.2"),
        # It may skip minor versions, which its control plane may not.
        ("1.28.2 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.32.0"),
        ("1.28.2 1.29.1! 1.30.1 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.30.1"),
        ("1.28.2 1.29.1! 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.32.0"),
        ("1.28.2! 1.29.1 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.29.1"),
        ("1.28.2! 1.28.3 1.31.3! 1.32.0", "1.28.2", "1.32.0", "1.32.0"),
    ],
)
def test_a_pool_is_not_left_too_far_behind(kubernetes: str, pool: str, version: str, own: str) -> None:
    obj = at_version("1.31.3", worker(image="1.0.0", kubernetes={"version": pool}))
    drawn = planned(obj, together(kubernetes, "1.0.0"))
    assert chosen(drawn) == (version, [own], ["1.0.0"])
    assert failure_reason(drawn) == ""


def test_a_pool_that_would_be_too_far_behind_reports_why_it_is_updated() -> None:
    obj = at_version("1.31.3", worker("p", image="1.0.0", kubernetes={"version": "1.28.2"}))
    drawn = planned(obj, together("1.28.2 1.29.1 1.31.3! 1.32.0", "1.0.0<1.29 2.0.0"))
    assert chosen(drawn) == ("1.32.0", ["1.29.1"], ["2.0.0"])
    assert (
        'Worker pool "p": Updated Kubernetes version from "1.28.2" to "1.29.1". Reason: Kubernetes version of a worker '
        "pool must be at most 3 minor versions behind the control plane"
    ) in description(drawn)


def test_a_control_plane_waits_for_a_pool_that_can_not_follow() -> None:
    obj = at_version("1.31.3", worker("p", image="1.0.0", kubernetes={"version": "1.28.2"}))
    drawn = planned(obj, together("1.28.2 1.29.1 1.31.3! 1.32.0", "1.0.0<1.29"))
    assert chosen(drawn) == ("1.31.3", ["1.28.2"], ["1.0.0"])
    assert (
        '1.32.0: worker pool "p": its Kubernetes version "1.28.2" would be more than 3 minor versions behind the '
        "control plane, and no higher version of the CloudProfile suits the worker pool (1.29.1, 1.32.0, 1.31.3: machine image "
        '"os": "1.0.0" works with kubelet <1.29 only'
    ) in failure_reason(drawn)


def test_a_pool_whose_image_keeps_it_back_does_not_stop_its_control_plane() -> None:
    pools = [worker("p", image="1.0.0", kubernetes={"version": "1.30.5"}), worker("w", image="2.0.0")]
    drawn = planned(
        at_version("1.30.5", *pools), together("1.30.5! 1.31.1", "1.0.0<1.31 2.0.0", updateStrategy="patch")
    )
    assert chosen(drawn) == ("1.31.1", ["1.30.5", ""], ["1.0.0", "2.0.0"])
    assert failure_reason(drawn).startswith(
        'Worker pool "p": Kubernetes maintenance failure due to: no higher version of the CloudProfile suits the '
        'worker pool: 1.31.1: machine image "os": "1.0.0" works with kubelet <1.31 only, and no version follows'
    )


def test_an_expired_image_states_which_versions_do_not_suit_the_pool() -> None:
    drawn = planned(at_version("1.30.5", worker("w", image="1.0.0")), together("1.30.5", "1.0.0! 2.0.0>=1.31"))
    assert chosen(drawn) == ("1.30.5", [""], ["1.0.0"])
    assert failure_reason(drawn).endswith(
        '(higher versions that do not suit the worker pool: "2.0.0" works with kubelet >=1.31 only)'
    )


VERSIONS = st.lists(
    st.builds("1.{}.{}{}".format, st.integers(29, 32), st.integers(0, 2), st.sampled_from(("", "", "!"))),
    max_size=8,
    unique_by=lambda each: each.rstrip("!"),
)
IMAGES = st.lists(
    st.builds(
        "{}.{}.0{}{}".format,
        st.integers(1, 3),
        st.integers(0, 2),
        st.sampled_from(("", "<1.30", "<1.31", ">=1.31", ">=1.32", "<1.30.2")),
        st.sampled_from(("", "!")),
    ),
    max_size=6,
    unique_by=lambda each: each[:5],
)


@given(VERSIONS, IMAGES, st.sampled_from(("1.27.0", "1.28.0", "1.30.0")), st.booleans())
def test_versions_that_are_chosen_fit_each_other(
    kubernetes: list[str], images: list[str], own: str, auto: bool
) -> None:
    pools = [worker("w", image="1.0.0"), worker("p", image="1.0.0", kubernetes={"version": own})]
    offered = together(" ".join(["1.30.0!", *kubernetes]), " ".join(["1.0.0<1.31", *images]))
    drawn = planned(at_version("1.30.0", *pools, auto=auto), offered)
    version, (_, pool), (of_w, of_p) = chosen(drawn)
    new, behind = parse_version(version), parse_version(pool)
    assert new is not None
    assert behind is not None
    assert behind <= new
    assert new.minor - behind.minor <= 3
    for kubelet, image in ((new, of_w), (behind, of_p)):
        entry = next(each for each in offered["machineImages"][0]["versions"] if each["version"] == image)
        assert parse_constraint(entry.get("kubeletVersionConstraint", "*"))(kubelet)


# --- what goes along with versions


def crossed(old: str, new: str, *workers: Object, **kubernetes: Any) -> Plan:
    return planned(at_version(old, *workers, **kubernetes), profile(old, new, expired=old))


@pytest.mark.parametrize(
    ("old", "new", "enabled", "expected"),
    [("1.26.1", "1.27.0", True, False), ("1.27.1", "1.28.0", True, True), ("1.26.1", "1.27.0", False, False)],
)
def test_a_static_token_is_given_up_with_1_27(old: str, new: str, enabled: bool, expected: bool) -> None:
    drawn = crossed(old, new, enableStaticTokenKubeconfig=enabled)
    assert at(drawn.maintained, "spec", "kubernetes", "enableStaticTokenKubeconfig") is expected
    texts = [
        (
            "EnableStaticTokenKubeconfig is set to false. Reason: The static token kubeconfig can no longer be enabled for "
            "Shoot clusters using Kubernetes version 1.27 and higher"
        )
    ]
    assert drawn.texts == (texts if enabled is not expected else [])


@pytest.mark.parametrize(
    ("old", "new", "fields", "maximum"),
    [
        ("1.26.1", "1.27.0", {"maximum": 1, "zones": ["a", "b", "c"]}, 3),
        ("1.26.1", "1.27.0", {"maximum": 3, "zones": ["a", "b", "c"]}, 3),
        ("1.26.1", "1.27.0", {"maximum": 1, "zones": ["a", "b"], "systemComponents": {"allow": False}}, 1),
        ("1.26.1", "1.27.0", {"maximum": 0, "zones": ["a", "b"]}, 0),
        ("1.27.1", "1.28.0", {"maximum": 1, "zones": ["a", "b"]}, 1),
    ],
)
def test_a_pool_has_a_worker_for_each_zone_from_1_27_on(old: str, new: str, fields: Object, maximum: int) -> None:
    drawn = crossed(old, new, worker(**fields))
    assert at(drawn.maintained, "spec", "provider", "workers")[0]["maximum"] == maximum
    if maximum == fields["maximum"]:
        assert drawn.texts == []
    else:
        assert drawn.texts == [
            (
                'Maximum of worker-pool "w" upgraded from 1 to 3. Reason: Maximum number of workers of a worker group must '
                'be greater or equal to its number of zones for updating Kubernetes to "1.27.0"'
            )
        ]


def removed(what: str, path: str, version: str, names: str) -> str:
    return f'Removed {what} from "{path}" because they are not supported in Kubernetes version "{version}": {names}'


@pytest.mark.parametrize(
    "component", ["kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet"]
)
def test_feature_gates_that_the_version_does_not_know_are_removed(component: str) -> None:
    feature_gates = {"NodeSwap": True, "CSIMigrationGCE": True, "AdvancedAuditing": False}
    drawn = crossed("1.27.1", "1.28.2", **{component: {"featureGates": feature_gates, "kept": 1}})
    path = f"spec.kubernetes.{component}.featureGates"
    assert at(drawn.maintained, "spec", "kubernetes", component) == {"featureGates": {"NodeSwap": True}, "kept": 1}
    assert drawn.texts == [removed("feature gates", path, "1.28.2", "AdvancedAuditing, CSIMigrationGCE")]


def test_feature_gates_of_a_pool_suit_its_own_version() -> None:
    kubelet = {"featureGates": {"CSIMigrationGCE": True}}
    pools = [
        worker("a", kubernetes={"kubelet": copy.deepcopy(kubelet)}),
        worker("b", kubernetes={"kubelet": copy.deepcopy(kubelet), "version": "1.27.5"}),
    ]
    drawn = planned(at_version("1.27.1", *pools), profile("1.27.1", "1.27.5", "1.28.2", expired="1.27.1"))
    assert drawn.texts == []
    drawn = planned(at_version("1.27.1", *pools), profile("1.27.1", "1.28.2", "1.27.5", expired="1.27.1 1.27.5"))
    # The control plane goes to 1.28.2, since 1.27.5 has expired; and so does the other pool.
    path = "spec.provider.workers[{}].kubernetes.kubelet.featureGates"
    assert drawn.texts == [
        removed("feature gates", path.format(index), "1.28.2", "CSIMigrationGCE") for index in (0, 1)
    ]


def test_admission_plugins_that_the_version_does_not_know_are_removed() -> None:
    plugins = [{"name": "SecurityContextDeny"}, {"name": "NodeRestriction", "config": {}}]
    drawn = crossed("1.29.1", "1.30.2", kubeAPIServer={"admissionPlugins": plugins})
    assert at(drawn.maintained, "spec", "kubernetes", "kubeAPIServer", "admissionPlugins") == [plugins[1]]
    path = "spec.kubernetes.kubeAPIServer.admissionPlugins"
    assert drawn.texts == [removed("admission plugins", path, "1.30.2", "SecurityContextDeny")]
    alone = crossed("1.29.1", "1.30.2", kubeAPIServer={"admissionPlugins": plugins[:1]})
    assert at(alone.maintained, "spec", "kubernetes", "kubeAPIServer") == {}


UNLIMITED: Object = {"memorySwap": {"swapBehavior": "UnlimitedSwap"}}
LIMITED = "{}.memorySwap.swapBehavior is set to 'LimitedSwap'. Reason: 'UnlimitedSwap' cannot be used for Kubernetes version 1.30 and higher."


@pytest.mark.parametrize(
    ("old", "new", "own", "paths"),
    [
        ("1.29.1", "1.30.2", "", ("spec.kubernetes.kubelet", "spec.provider.workers[0].kubernetes.kubelet")),
        ("1.29.1", "1.30.2", "1.28.0", ("spec.kubernetes.kubelet",)),
        ("1.28.1", "1.29.2", "", ()),
        ("1.30.1", "1.31.2", "1.30.1", ("spec.provider.workers[0].kubernetes.kubelet",)),
        ("1.31.1", "1.32.2", "1.29.1", ()),
    ],
)
def test_swap_is_limited_from_1_30_on(old: str, new: str, own: str, paths: tuple[str, ...]) -> None:
    fields = {"kubelet": copy.deepcopy(UNLIMITED), **({"version": own} if own else {})}
    obj = at_version(old, worker(kubernetes=fields), kubelet=copy.deepcopy(UNLIMITED))
    drawn = planned(obj, profile(old, new, *([own] if own else []), expired=old))
    assert drawn.texts == [LIMITED.format(path) for path in paths]


FORBIDDEN: list[tuple[str, str, Object, Object, str]] = [
    (
        "1.30.1",
        "1.31.1",
        {"kubernetes": {"kubeAPIServer": {"oidcConfig": {"clientID": "c", "clientAuthentication": {"secret": "s"}}}}},
        {"kubernetes": {"kubeAPIServer": {"oidcConfig": {"clientID": "c"}}}},
        "kubernetes.kubeAPIServer.oidcConfig.clientAuthentication",
    ),
    (
        "1.30.1",
        "1.31.1",
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "80m", "pid": 5}, "systemReserved": {"cpu": "1"}}}},
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "1080m", "pid": 5}}}},
        "kubernetes.kubelet.systemReserved",
    ),
    (
        "1.31.1",
        "1.32.1",
        {"kubernetes": {"kubeAPIServer": {"oidcConfig": {"clientID": "c"}, "eventTTL": "1h"}}},
        {"kubernetes": {"kubeAPIServer": {"eventTTL": "1h"}}},
        "kubernetes.kubeAPIServer.oidcConfig",
    ),
    (
        "1.31.1",
        "1.32.1",
        {"kubernetes": {"clusterAutoscaler": {"ignoreTaints": ["a", "b"], "startupTaints": ["b", "c"]}}},
        {"kubernetes": {"clusterAutoscaler": {"startupTaints": ["b", "c", "a"]}}},
        "kubernetes.clusterAutoscaler.ignoreTaints",
    ),
    (
        "1.32.1",
        "1.33.1",
        {"kubernetes": {"kubeControllerManager": {"podEvictionTimeout": "2m"}}},
        {"kubernetes": {"kubeControllerManager": {}}},
        "kubernetes.kubeControllerManager.podEvictionTimeout",
    ),
    (
        "1.32.1",
        "1.33.1",
        {"kubernetes": {"clusterAutoscaler": {"maxEmptyBulkDelete": 5, "maxScaleDownParallelism": 5}}},
        {"kubernetes": {"clusterAutoscaler": {"maxScaleDownParallelism": 5}}},
        "kubernetes.clusterAutoscaler.maxEmptyBulkDelete",
    ),
    (
        "1.33.1",
        "1.34.1",
        {"cloudProfileName": "p", "cloudProfile": {"kind": "NamespacedCloudProfile", "name": "n"}},
        {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "n"}},
        "cloudProfileName",
    ),
    (
        "1.33.1",
        "1.34.1",
        {"cloudProfileName": "p"},
        {"cloudProfile": {"kind": "CloudProfile", "name": "p"}},
        "cloudProfileName",
    ),
    (
        "1.34.1",
        "1.35.1",
        {"kubernetes": {"kubeAPIServer": {"enableAnonymousAuthentication": False, "eventTTL": "1h"}}},
        {"kubernetes": {"kubeAPIServer": {"eventTTL": "1h"}}},
        "kubernetes.kubeAPIServer.enableAnonymousAuthentication",
    ),
    (
        "1.34.1",
        "1.35.1",
        {"kubernetes": {"kubeAPIServer": {"watchCacheSizes": {"default": 0, "resources": [{"resource": "pods"}]}}}},
        {"kubernetes": {"kubeAPIServer": {"watchCacheSizes": {"resources": [{"resource": "pods"}]}}}},
        "kubernetes.kubeAPIServer.watchCacheSizes.default",
    ),
    (
        "1.34.1",
        "1.35.1",
        {"kubernetes": {"kubeScheduler": {"kubeMaxPDVols": "20", "profile": "balanced"}}},
        {"kubernetes": {"kubeScheduler": {"profile": "balanced"}}},
        "kubernetes.kubeScheduler.kubeMaxPDVols",
    ),
    ("1.34.1", "1.35.1", {"addons": {"nginxIngress": {"enabled": True}}}, {}, "addons"),
    (
        "1.34.1",
        "1.35.1",
        {"dns": {"providers": [{"secretName": "s", "credentialsRef": {"name": "s"}}, {"secretName": "only"}]}},
        {"dns": {"providers": [{"credentialsRef": {"name": "s"}}, {"secretName": "only"}]}},
        "dns.providers[].secretName",
    ),
]


@pytest.mark.parametrize(("old", "new", "before", "after", "path"), FORBIDDEN)
def test_a_setting_that_the_new_version_forbids_is_removed(
    old: str, new: str, before: Object, after: Object, path: str
) -> None:
    def specified(version: str, fields: Object) -> Object:
        obj = at_version(version)
        merged = {**fields, "kubernetes": {**fields.get("kubernetes", {}), "version": version}}
        obj["spec"] = {**{k: v for k, v in obj["spec"].items() if k != "cloudProfile"}, **copy.deepcopy(merged)}
        return obj

    drawn = planned(specified(old, before), profile(old, new, expired=old))
    assert drawn.maintained["spec"] == specified(new, after)["spec"]
    (text,) = drawn.texts
    since = ".".join(new.split(".")[:2])
    assert text.startswith(f"Removed spec.{path}. Reason: it is forbidden from Kubernetes version {since} on, ")
    # It was there before, and stays where the version does not change, or not to this minor version.
    for version in (old, new):
        kept = planned(specified(version, before), profile(version))
        assert kept.maintained["spec"] == specified(version, before)["spec"]
        assert kept.texts == []


def test_each_setting_of_the_table_has_a_case_a_source_and_a_place_in_the_documentation() -> None:
    documented = Path(__file__).parents[3].joinpath("docs/shoots.md").read_text()
    assert [setting.path for setting in settings() if f"`{setting.path}`" not in documented] == []
    assert {setting.path for setting in settings()} == {"secretBindingName", *(path for *_, path in FORBIDDEN)}
    assert all(setting.source.startswith("https://github.com/gardener/gardener/") for setting in settings())
    assert all(setting.reason and OLDEST < setting.since <= NEWEST for setting in settings())


@pytest.mark.parametrize(("own", "is_moved"), [("", True), ("1.30.1", False), ("1.30.5", True)])
def test_what_a_pool_reserves_for_the_system_is_reserved_for_kubernetes(own: str, is_moved: bool) -> None:
    reserved: Object = {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi", "ephemeralStorage": "1G"},
        "systemReserved": {"cpu": "120m", "memory": "512Mi", "pid": "1k"},
    }
    obj = at_version("1.30.5", worker(kubernetes={"kubelet": reserved, **({"version": own} if own else {})}))
    drawn = planned(obj, profile("1.30.1", "1.30.5", "1.31.1", expired="1.30.5"))
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.31.1"
    kubelet = at(drawn.maintained, "spec", "provider", "workers")[0]["kubernetes"]["kubelet"]
    if not is_moved:
        assert kubelet == reserved
        return
    assert kubelet == {
        "kubeReserved": {"cpu": "200m", "memory": "1536Mi", "ephemeralStorage": "1G", "pid": "1k"},
    }
    assert drawn.texts[0].startswith("Removed spec.provider.workers[0].kubernetes.kubelet.systemReserved. Reason: ")


SECRET_BINDING: Object = {
    "metadata": {"name": "sb", "namespace": "n"},
    "provider": {"type": "local"},
    "secretRef": {"name": "s", "namespace": "elsewhere"},
    "quotas": [{"name": "q"}, {"name": "r", "namespace": "garden"}],
}
NEW_BINDING: Object = {
    "apiVersion": "security.gardener.cloud/v1alpha1",
    "kind": "CredentialsBinding",
    "metadata": {
        "name": "force-migrated-sb",
        "namespace": "n",
        "labels": {"credentialsbinding.gardener.cloud/status": "force-migrated"},
    },
    "provider": {"type": "local"},
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "elsewhere"},
    "quotas": [{"name": "q"}, {"name": "r", "namespace": "garden"}],
}


def credentials(name: str, namespace: str = "n", **fields: Any) -> Object:
    return {**NEW_BINDING, "metadata": {"name": name, "namespace": namespace, "uid": name}, **fields}


OTHER_SECRET = {**NEW_BINDING["credentialsRef"], "name": "t"}


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ([], "force-migrated-sb"),
        ([credentials("b"), credentials("a")], "a"),
        ([credentials("a"), credentials("force-migrated-sb")], "force-migrated-sb"),
        ([credentials("a", quotas=[{"name": "r", "namespace": "garden"}, {"name": "q", "namespace": "n"}])], "a"),
        # None of these leads to the same.
        ([credentials("a", "m")], "force-migrated-sb"),
        ([credentials("a", quotas=[])], "force-migrated-sb"),
        ([credentials("a", credentialsRef=OTHER_SECRET)], "force-migrated-sb"),
        ([credentials("a", provider={"type": "other"})], "force-migrated-sb"),
        ([credentials("force-migrated-sb", credentialsRef=OTHER_SECRET)], None),
    ],
)
def test_the_credentials_binding_in_the_place_of_a_secret_binding(others: list[Object], name: str | None) -> None:
    found = replacement(SECRET_BINDING, others)
    if name is None:
        assert found is None
        return
    assert found is not None
    assert found["metadata"]["name"] == name
    assert is_new(found) is (
        name not in {each["metadata"]["name"] for each in others if each["metadata"]["namespace"] == "n"}
    )
    if is_new(found):
        assert found == NEW_BINDING


@pytest.mark.parametrize(
    ("old", "new", "binding", "after"),
    [
        ("1.33.1", "1.34.1", NEW_BINDING, {"credentialsBindingName": "force-migrated-sb"}),
        ("1.33.1", "1.34.1", None, {"secretBindingName": "sb"}),
        ("1.32.1", "1.33.1", NEW_BINDING, {"secretBindingName": "sb"}),
        ("1.34.1", "1.35.1", NEW_BINDING, {"secretBindingName": "sb"}),
    ],
)
def test_a_shoot_goes_from_its_secret_binding_to_a_credentials_binding(
    old: str, new: str, binding: Object | None, after: Object
) -> None:
    obj = at_version(old)
    obj["spec"]["secretBindingName"] = "sb"
    offered = profile(old, new, expired=old)
    drawn = plan(obj, offered, now=NOW, restarts=Restarts(), replacement=lambda: binding)
    assert {name: value for name, value in drawn.maintained["spec"].items() if "Binding" in name} == after
    is_moved = "credentialsBindingName" in after
    assert drawn.binding == (binding if is_moved else None)
    assert [text for text in drawn.texts if "Binding" in text] == (
        [
            (
                "Removed spec.secretBindingName. Reason: it is forbidden from Kubernetes version 1.34 on, "
                'credentialsBindingName has its place: "force-migrated-sb"'
            )
        ]
        if is_moved
        else []
    )


def test_api_versions_that_the_version_does_not_know_are_removed() -> None:
    runtime = {"resource.k8s.io/v1alpha2": True, "resource.k8s.io/v1alpha2/resourceclaims": True, "batch/v1": False}
    drawn = crossed("1.30.1", "1.31.2", kubeAPIServer={"runtimeConfig": runtime})
    assert at(drawn.maintained, "spec", "kubernetes", "kubeAPIServer") == {"runtimeConfig": {"batch/v1": False}}
    path, names = "spec.kubernetes.kubeAPIServer.runtimeConfig", sorted(list(runtime)[:2])
    assert drawn.texts == [removed("API versions", path, "1.31.2", ", ".join(names))]


# --- tables of what versions know


@pytest.mark.parametrize(
    ("version", "unknown"),
    [
        ("1.24.0", []),
        ("1.25.0", ["AdmissionWebhookMatchConditions", "Foo", "SystemdWatchdog"]),
        ("1.27.9", ["Foo", "SystemdWatchdog"]),
        ("1.28.0", ["CSIMigrationGCE", "Foo", "SystemdWatchdog"]),
        ("1.32.0", ["CSIMigrationGCE", "Foo"]),
        ("1.33.0", ["AdmissionWebhookMatchConditions", "CSIMigrationGCE", "Foo"]),
        # What newer versions know is not known here.
        ("1.99.0", ["AdmissionWebhookMatchConditions", "CSIMigrationGCE"]),
    ],
)
def test_which_feature_gates_a_version_knows(version: str, unknown: list[str]) -> None:
    names = ("NodeSwap", "CSIMigrationGCE", "AdmissionWebhookMatchConditions", "SystemdWatchdog", "Foo")
    parsed = parse_version(version)
    assert parsed is not None
    assert feature_gates().unknown(names, parsed) == unknown


def test_the_tables_are_sound() -> None:
    for table, fewest in ((feature_gates(), 300), (admission_plugins(), 40)):
        assert len(table.spans) > fewest
        assert all(OLDEST <= first <= last <= NEWEST for first, last in table.spans.values())
        assert list(table.spans) == sorted(table.spans)
    assert all(OLDEST <= last < NEWEST for last in ended_api_versions().values())
    assert list(ended_api_versions()) == sorted(ended_api_versions())


# --- operation and tasks


@pytest.mark.parametrize(
    ("state", "before", "after", "text"),
    [
        # Never reconciled yet.
        ("", {OPERATION: "maintain"}, {}, ""),
        ("", {PLANNED: "rotate-ca-start"}, {PLANNED: "rotate-ca-start"}, ""),
        ("Succeeded", {}, {OPERATION: "reconcile"}, ""),
        ("Processing", {OPERATION: "maintain"}, {OPERATION: "reconcile"}, ""),
        ("Error", {OPERATION: "maintain"}, {OPERATION: "reconcile"}, ""),
        ("Succeeded", {OPERATION: "maintain", PLANNED: "reconcile"}, {OPERATION: "reconcile"}, ""),
        ("Succeeded", {PLANNED: "rotate-ca-start"}, {OPERATION: "rotate-ca-start"}, "rotate-ca-start"),
        (
            "Succeeded",
            {OPERATION: "maintain", PLANNED: "rotate-ssh-keypair"},
            {OPERATION: "rotate-ssh-keypair"},
            "rotate-ssh-keypair",
        ),
        ("Succeeded", {NEEDS_RETRY: "true"}, {OPERATION: "reconcile", NEEDS_RETRY: "true"}, ""),
        # What a user has requested and waits for is not lost.
        ("Succeeded", {OPERATION: "rotate-ca-start"}, {OPERATION: "rotate-ca-start"}, ""),
        (
            "Succeeded",
            {OPERATION: "rotate-ca-start", PLANNED: "reconcile"},
            {OPERATION: "rotate-ca-start", PLANNED: "reconcile"},
            "",
        ),
        ("Succeeded", {OPERATION: "retry"}, {OPERATION: "reconcile"}, ""),
        # Failed for good.
        ("Failed", {OPERATION: "maintain"}, {}, ""),
        ("Failed", {OPERATION: "maintain", PLANNED: "rotate-ca-start"}, {PLANNED: "rotate-ca-start"}, ""),
        ("Failed", {OPERATION: "maintain", NEEDS_RETRY: "true"}, {OPERATION: "retry"}, ""),
        ("Failed", {NEEDS_RETRY: "1", PLANNED: "reconcile"}, {OPERATION: "retry", PLANNED: "reconcile"}, ""),
        ("Failed", {NEEDS_RETRY: "false"}, {NEEDS_RETRY: "false"}, ""),
    ],
)
def test_the_operation_of_a_maintained_shoot(
    state: str, before: dict[str, str], after: dict[str, str], text: str
) -> None:
    drawn = planned(at_version("1.29.3", worker(), state=state, annotations=before), profile("1.29.3"))
    left = {name: value for name, value in drawn.maintained["metadata"]["annotations"].items() if name != TASKS}
    assert left == after
    assert drawn.texts == ([f'Added "{text}" operation annotation'] if text else [])
    if text:
        assert description(drawn) == f'All maintenance operations successful. Added "{text}" operation annotation'


@pytest.mark.parametrize(
    ("present", "restarts", "tasks"),
    [
        ("", Restarts(control_plane=False), ALWAYS),
        ("", Restarts(), f"{ALWAYS},restartControlPlanePods"),
        ("", Restarts(core_addons=True), f"{ALWAYS},restartControlPlanePods,restartCoreAddons"),
        ("other, deployInfrastructure", Restarts(control_plane=False), f"other,{ALWAYS}"),
        (f"{ALWAYS},restartControlPlanePods", Restarts(), f"{ALWAYS},restartControlPlanePods"),
    ],
)
def test_the_tasks_of_a_maintained_shoot(present: str, restarts: Restarts, tasks: str) -> None:
    obj = at_version("1.29.3", annotations={TASKS: present} if present else {})
    drawn = planned(obj, profile("1.29.3"), restarts)
    assert drawn.maintained["metadata"]["annotations"][TASKS] == tasks


# --- status.lastMaintenance


def test_what_the_status_reports_on_the_way() -> None:
    drawn = planned(at_version("1.29.3", worker(), auto=True), profile("1.29.3", "1.29.4", images=("5.1.0",)))
    assert begun(drawn, NOW) == {
        "description": description(drawn),
        "state": "Processing",
        "triggeredTime": "2024-01-16T12:00:00Z",
    }
    assert ended(begun(drawn, NOW), changed=True) == {**begun(drawn, NOW), "state": "Succeeded"}
    assert refused("no", NOW) == {
        "description": "Maintenance failed",
        "state": "Failed",
        "failureReason": "Updates to the Shoot failed to be applied: no",
        "triggeredTime": "2024-01-16T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("before", "changed", "after"),
    [
        ({}, False, {}),
        ({"state": "Succeeded", "description": "d"}, False, {"state": "Succeeded", "description": "d"}),
        ({"state": "Processing", "description": "d"}, False, {"state": "Succeeded", "description": "d"}),
        (
            {"state": "Failed", "description": "d", "failureReason": "r"},
            True,
            {"state": "Failed", "description": "d", "failureReason": "r"},
        ),
        (
            {"state": "Failed", "description": "d", "failureReason": "r", "triggeredTime": "t"},
            False,
            {"state": "Succeeded", "description": "Maintenance succeeded", "triggeredTime": "t"},
        ),
    ],
)
def test_what_the_status_reports_in_the_end(before: Object, changed: bool, after: Object) -> None:
    assert ended(before, changed=changed) == after


@pytest.mark.parametrize(
    "damaged", [{}, {"spec": None}, {"spec": {"kubernetes": [], "provider": {"workers": [1, {}]}}}]
)
def test_of_a_damaged_shoot_nothing_is_updated_and_the_plan_states_so(damaged: Object) -> None:
    drawn = planned(damaged, {})
    assert drawn.control_plane is not None
    assert not drawn.control_plane.succeeded
    assert drawn.updates == [drawn.control_plane]
    assert drawn.maintained["spec"] == (damaged.get("spec") or {})
