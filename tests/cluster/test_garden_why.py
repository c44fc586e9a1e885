"""`kubectl gardener why` on a real API server."""

import contextlib
import json
import os
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gardener.api.garden import (
    BACKUP_BUCKETS,
    BASTIONS,
    CLOUD_PROFILES,
    CONTROLLER_INSTALLATIONS,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import eventually
from kit.garden import CONFIRMED, Garden
from kit.garden_objects import garden_object
from kit.garden_scheduler import set_room, usable_seed
from kit.garden_shoots import ShootPlace
from kube.clock import format_micro_time, format_time
from kube.errors import AlreadyExists, Forbidden
from kube.resources import LEASES, NAMESPACES, ROLE_BINDINGS
from kubectl.garden.__main__ import app
from kubectl.garden.kinds import KINDS

pytestmark = pytest.mark.timeout(600)

HELD: Any = {"metadata": {"finalizers": ["gardener"]}}
FREED: Any = {"metadata": {"finalizers": None}}
UNKNOWN = {
    "type": "GardenletReady",
    "status": "Unknown",
    "reason": "SeedStatusUnknown",
    "message": "Gardenlet stopped posting seed status.",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
}


def run(garden: Garden, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(garden.cluster.kubeconfig), "NO_COLOR": "1"}
    return CliRunner().invoke(app, ["why", *arguments], prog_name="kubectl gardener", env=environment)


def why(garden: Garden, *arguments: str) -> list[str]:
    """Level, what it is about, and the text with its remedy, a line each."""
    result = run(garden, *arguments)
    assert result.exit_code == 0, result.output
    assert not result.stderr
    return [" ".join(line.split()) for line in result.stdout.splitlines()[1:]]


def has(lines: list[str], *parts: str) -> bool:
    return any(all(part in line for part in parts) for line in lines)


_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r"\b(\d+[smhd])+(?![\w.])"), "AGE"),
    (re.compile(r"(?<=\S) +"), " "),
)


def stable(text: str) -> str:
    for pattern, instead in _VOLATILE:
        text = pattern.sub(instead, text)
    return text


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


def test_a_shoot_shows_what_comes(garden: Garden, place: ShootPlace) -> None:
    limited_shoot(place)
    lines = why(garden, "shoot", "s", "-n", place.namespace)
    assert has(lines, "next maintenance", 'from "1.30.1" to "1.30.4"')
    assert has(lines, "next hibernation it is awake, and goes to sleep at", "T20:00:00Z")
    assert has(lines, "next expiration", "by a Quota of 30 days", "→ for a day more: kubectl annotate shoot s")
    again = why(garden, "shoots/s", "-n", place.namespace)
    assert list(map(stable, again)) == list(map(stable, lines))


def limited_shoot(place: ShootPlace) -> None:
    """The Shoot `s`, on a Seed, with a Quota, a schedule, and a newer version of Kubernetes."""
    versions = [{"version": "1.30.1"}, {"version": "1.30.4"}]
    place.patch(CLOUD_PROFILES, place.name, {"spec": {"kubernetes": {"versions": versions}}})
    limit = {"scope": {"apiVersion": "v1", "kind": "Secret"}, "clusterLifetimeDays": 30, "metrics": {}}
    place.create(QUOTAS, "short", spec=limit)
    quota = {"name": "short", "namespace": place.namespace}
    secret = {"name": place.name, "namespace": place.namespace}
    place.create(SECRET_BINDINGS, "limited", provider={"type": place.name}, secretRef=secret, quotas=[quota])
    later = datetime.now(UTC) + timedelta(hours=6)
    window = {"begin": f"{later:%H}0000+0000", "end": f"{later + timedelta(hours=1):%H}0000+0000"}
    place.shoot(
        "s",
        secretBindingName="limited",
        seedName=place.seed(),
        hibernation={"schedules": [{"start": "0 20 * * *"}]},
        maintenance={"autoUpdate": {"kubernetesVersion": True, "machineImageVersion": False}, "timeWindow": window},
    )


def test_a_shoot_that_waits_names_what_excludes_each_seed(garden: Garden, place: ShootPlace) -> None:
    full = usable_seed(place, "-full", room=0)
    place.shoot("s")
    place.shoot("other", schedulerName="other")
    lines = why(garden, "shoot", "s", "-n", place.namespace)
    assert has(lines, f"blocked seed capacity Seed {full}: seed does not have available capacity for shoots")
    set_room(place, full, 1)
    assert has(
        why(garden, "shoot", "s", "-n", place.namespace),
        f"next seed it is on no Seed yet: it waits for the scheduler, which can choose Seed {full}",
    )
    lines = why(garden, "shoot", "other", "-n", place.namespace)
    assert has(lines, "waits for the scheduler other")
    assert not has(lines, full)


def test_a_deletion_names_who_holds_it(garden: Garden, place: ShootPlace) -> None:
    seed = place.seed()
    place.shoot("s", seedName=seed)
    place.patch(SHOOTS, "s", HELD)
    place.patch(SEEDS, seed, {"status": {"conditions": [UNKNOWN]}}, status=True)
    place.delete(SHOOTS, "s")
    place.patch(PROJECTS, place.name, HELD)
    place.patch(PROJECTS, place.name, CONFIRMED)
    place.delete(PROJECTS, place.name)
    place.patch(CLOUD_PROFILES, place.name, HELD)
    place.delete(CLOUD_PROFILES, place.name)
    lost = f"waits for the gardenlet of Seed {seed}, which is lost, to remove the cluster"
    own = f"{place.namespace}/s"
    lines = why(garden, "shoot", "s", "-n", place.namespace)
    assert lines[0].startswith("blocked deletion")
    assert has(lines, lost, f"→ kubectl gardener why seed {seed}")
    assert has(why(garden, "project", place.name), "blocked deletion", f"waits for Shoot {own}")
    assert has(why(garden, "cpfl", place.name), "blocked deletion", f"waits for Shoot {own}")
    assert has(why(garden, "seed", seed), "info users", "a deletion is refused while it has Shoots", own)
    for kind, name in ((SHOOTS, "s"), (PROJECTS, place.name), (CLOUD_PROFILES, place.name)):
        place.patch(kind, name, FREED)
    assert run(garden, "shoot", "s", "-n", place.namespace).exit_code == 1


def test_a_seed_shows_its_last_heartbeat(garden: Garden, place: ShootPlace) -> None:
    seed = place.seed()
    place.patch(SEEDS, seed, {"status": {"conditions": [UNKNOWN]}}, status=True)
    assert has(why(garden, "seed", seed), "problem heartbeat", "has never renewed the Lease")
    renewed = datetime.now(UTC) - timedelta(hours=3)
    with contextlib.suppress(AlreadyExists):
        garden.create(NAMESPACES, LEASE_NAMESPACE)
    garden.create(LEASES, seed, namespace=LEASE_NAMESPACE, spec={"renewTime": format_micro_time(renewed)})
    lines = why(garden, "seed", seed)
    assert has(lines, "problem heartbeat", format_time(renewed), "ago)")
    assert has(lines, "problem condition GardenletReady is Unknown", "Gardenlet stopped posting seed status.")


def test_who_is_no_member_any_more_is_named_and_has_no_more_than_a_member(garden: Garden, place: ShootPlace) -> None:
    """The rights of ben are those that the controller manager gives to an admin."""
    ben, eve = f"ben-{place.name}", f"eve-{place.name}"

    def bind(by: Garden, name: str, role: str, user: str) -> bool:
        group = "rbac.authorization.k8s.io"
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        subject = {"apiGroup": group, "kind": "User", "name": user}
        by.create(ROLE_BINDINGS, name, namespace=place.namespace, roleRef=reference, subjects=[subject])
        return True

    bind(garden, "ben", "gardener.cloud:system:project-member", ben)
    member = garden.as_user(ben)
    eventually(lambda: bind(member, "eve", "gardener.cloud:system:project-member", eve), passing=(Forbidden,))
    for more in ("gardener.cloud:system:project-serviceaccountmanager", "cluster-admin"):
        with pytest.raises(Forbidden):
            bind(member, "more", more, eve)
    findings = why(garden, "project", place.name)
    assert has(findings, "problem rights", f"{place.namespace}/eve gives ClusterRole", f"to User {eve}, not members")


def test_programs_get_all_as_data(garden: Garden, place: ShootPlace) -> None:
    place.shoot("s")
    found = json.loads(run(garden, "sb", place.name, "-n", place.namespace, "-o", "json").stdout)
    assert (found["kind"], found["namespace"], found["name"]) == ("SecretBinding", place.namespace, place.name)
    (only,) = found["findings"]
    assert only["users"] == [{"kind": "Shoot", "namespace": place.namespace, "name": "s"}]
    assert only["level"] == "info"
    assert found["unread"] == []
    yaml = run(garden, "secretbinding", place.name, "-n", place.namespace, "-o", "yaml").stdout
    assert "\nfindings:\n- level: info\n" in yaml


def test_what_may_not_be_read_is_reported(garden: Garden, place: ShootPlace) -> None:
    place.shoot("s", seedName=place.seed())
    user = f"reader-{place.name}"
    garden.allow(user, "get", SHOOTS)
    result = run(garden, "shoot", "s", "-n", place.namespace, "--as", user)
    assert result.exit_code == 0, result.output
    binding = f"SecretBinding {place.namespace}/{place.name}"
    assert f"you may not read {binding}, so findings that depend on that are missing" in result.stderr
    data = json.loads(run(garden, "shoot", "s", "-n", place.namespace, "--as", user, "-o", "json").stdout)
    assert data["unread"] == [binding]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("pod", "x"), "nothing is known of the kind 'pod'", "choose one of: shoot, seed, project"),
        (("shot", "x"), "nothing is known of the kind 'shot'", "did you mean shoot"),
        (("shoot",), "names no object", "for example: kubectl gardener why shoot NAME"),
        (("shoot/a", "b"), "names two objects", "for example"),
        (("seed", "no-such-seed-at-all"), "Seed no-such-seed-at-all not found", "kubectl get seeds"),
    ],
)
def test_mistakes_are_answered_by_a_remedy(garden: Garden, arguments: tuple[str, ...], message: str, hint: str) -> None:
    result = run(garden, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert hint in result.stderr


# --- docs/kubectl-gardener.md

PAGE = Path(__file__).parents[2] / "docs" / "kubectl-gardener.md"


def test_all_kinds_can_be_queried(garden: Garden, place: ShootPlace) -> None:
    for resource in KINDS:
        result = run(garden, f"{resource.plural}/absent", "-n", place.namespace)
        assert result.exit_code == 1
        assert re.search(rf"{resource.kind} \S*absent not found", result.stderr), result.stderr
    seed = place.seed()
    secret = {"name": place.name, "namespace": place.namespace}
    bucket = {"provider": {"type": place.name, "region": "r"}, "seedName": seed, "secretRef": secret}
    place.create(BACKUP_BUCKETS, place.name, spec=bucket)
    lines = why(garden, "bbc", place.name)
    assert has(lines, f"blocked change the gardenlet of Seed {seed} has not started its reconciliation")


def test_what_a_bastion_and_an_installation_wait_for_is_explained(garden: Garden, place: ShootPlace) -> None:
    place.shoot("s", seedName=place.seed())
    bastion = garden_object(BASTIONS)["spec"] | {"shootRef": {"name": "s"}}
    place.create(BASTIONS, "b", spec=bastion)
    lines = why(garden, "bastion", "b", "-n", place.namespace)
    assert has(lines, "blocked change", f"the gardenlet of Seed {place.name} has not started its reconciliation")
    references = {"registrationRef": {"name": place.name}, "seedRef": {"name": "gone"}}
    place.create(CONTROLLER_INSTALLATIONS, place.name, spec=references)
    assert has(why(garden, "controllerinstallation", place.name), "problem reference", "its Seed gone does not exist")


_BLOCK = re.compile(r"^```\n\$ (kubectl gardener [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_shows_the_same_findings(garden: Garden, place: ShootPlace) -> None:
    """With UPDATE_DOCS=1 the page is rewritten."""
    limited_shoot(place)
    place.shoot("old", seedName=place.name)
    place.patch(SHOOTS, "old", HELD)
    place.delete(SHOOTS, "old")
    place.patch(SEEDS, place.name, {"status": {"conditions": [UNKNOWN]}}, status=True)
    place.patch(PROJECTS, place.name, {"status": {"phase": "Ready"}}, status=True)
    page = PAGE.read_text()

    def output(block: re.Match[str]) -> str:
        """A block of the page as it is now; `dev` stands for all names of this test."""
        command = shlex.split(re.sub(r"\bdev\b", place.name, block[1]))
        result = run(garden, *command[3:])
        assert result.exit_code == 0, result.output
        shown = result.stdout.replace(place.name, "dev")
        same = stable(shown) == stable(block[2])
        return block[0] if same else f"```\n$ {block[1]}\n{shown}```"

    now = _BLOCK.sub(output, page)
    place.patch(SHOOTS, "old", FREED)
    assert len(_BLOCK.findall(page)) == 3
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(now)
    else:
        assert now == page, "UPDATE_DOCS=1 writes the page again"
