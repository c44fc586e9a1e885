"""What maintenance changes in a Shoot, and how it is reported."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.garden.maintenance.plan import Plan, Restarts, plan
from gardener.garden.maintenance.repairs import NEWEST, OLDEST, admission_plugins, feature_gates
from gardener.garden.maintenance.report import begun, description, ended, failure_reason, messages, refused
from gardener.garden.versions import parse_version
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


def test_an_image_that_the_profile_lacks_stops_the_updates_of_all_images_and_nothing_else() -> None:
    obj = at_version("1.29.3", worker("w"), worker("p"), auto=True)
    obj["spec"]["provider"]["workers"][1]["machine"]["image"]["name"] = "gone"
    drawn = planned(obj, profile("1.29.3", "1.29.4"))
    assert drawn.images == []
    assert drawn.problem == 'machine image "gone" is not in the CloudProfile'
    assert at(drawn.maintained, "spec", "provider") == at(obj, "spec", "provider")
    assert drawn.control_plane is not None


def test_images_suit_the_version_that_the_pool_has_before() -> None:
    offered = profile("1.29.3", "1.30.1", expired="1.29.3", images=("5.1.0",))
    offered["machineImages"][0]["versions"].append({"version": "5.2.0", "kubeletVersionConstraint": ">= 1.30"})
    obj = at_version("1.29.3", worker(), auto=True)
    assert planned(obj, offered).images == []


def test_a_shoot_without_workers_is_maintained() -> None:
    drawn = planned(
        at_version("1.29.3", auto=True), {"kubernetes": {"versions": [{"version": "1.29.3"}, {"version": "1.29.4"}]}}
    )
    assert at(drawn.maintained, "spec", "kubernetes", "version") == "1.29.4"


def test_nothing_to_do_is_no_change() -> None:
    drawn = planned(at_version("1.29.3", worker()), profile("1.29.3", "1.29.4"))
    assert not drawn.is_change
    assert drawn.maintained["metadata"]["annotations"] == {TASKS: f"{ALWAYS},restartControlPlanePods"}


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
        # What somebody has asked for and waits for is not lost.
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


def test_what_the_status_says_on_the_way() -> None:
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
def test_what_the_status_says_in_the_end(before: Object, changed: bool, after: Object) -> None:
    assert ended(before, changed=changed) == after


@pytest.mark.parametrize(
    "damaged", [{}, {"spec": None}, {"spec": {"kubernetes": [], "provider": {"workers": [1, {}]}}}]
)
def test_of_a_damaged_shoot_nothing_is_updated_and_the_plan_says_so(damaged: Object) -> None:
    drawn = planned(damaged, {})
    assert drawn.control_plane is not None
    assert not drawn.control_plane.succeeded
    assert drawn.updates == [drawn.control_plane]
    assert drawn.maintained["spec"] == (damaged.get("spec") or {})
