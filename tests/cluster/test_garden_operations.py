"""Commands of `kubectl gardener` that change Shoots, wait for them and list them, on a real API server."""

import contextlib
import json
import os
import pty
import re
import shlex
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gardener import keys
from gardener.api.garden import PROJECTS, SEEDS, SHOOTS
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.objects import role_binding
from kit.objects import user as of_user
from kit.scheduling import ready_status
from kube.objects import Object, annotations, is_deleting, metadata, spec
from kube.paths import at
from kube.resources import CLUSTER_ROLES, EVENTS, ROLE_BINDINGS, SECRETS
from kubectl.garden.__main__ import app

pytestmark = pytest.mark.timeout(600)

PROGRAM = (sys.executable, "-m", "kubectl.garden")
SUCCEEDED = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done"}
FAILED = SUCCEEDED | {"state": "Failed", "progress": 40, "description": "no quota"}


def run(garden: Garden, *arguments: str) -> Result:
    environment = {"KUBECONFIG": str(garden.cluster.kubeconfig), "NO_COLOR": "1"}
    return CliRunner().invoke(app, arguments, prog_name="kubectl gardener", env=environment)


@pytest.fixture
def place(garden: Garden) -> Iterator[ShootPlace]:
    place = ShootPlace(garden)
    yield place
    place.remove()


class Shoots:
    """Shoots of a place, and commands about them."""

    def __init__(self, place: ShootPlace) -> None:
        self.place = place
        self.seed = place.seed()

    def make(self, name: str, last: Object | None = None, **fields: Any) -> str:
        self.place.shoot(name, seedName=self.seed, **fields)
        if last is not None:
            self.report(name, last)
        return name

    def report(self, name: str, last: Object, **status: Any) -> None:
        """Write the status of a Shoot as its gardenlet does, about the present spec."""
        now = {"lastUpdateTime": "2026-01-01T00:00:00Z"}
        generation = metadata(self.get(name))["generation"]
        reported = {"lastOperation": last | now, "observedGeneration": generation, "seedName": self.seed, **status}
        self.place.patch(SHOOTS, name, {"status": reported}, status=True)

    def get(self, name: str) -> Object:
        return self.place.get(SHOOTS, name)

    def run(self, *arguments: str) -> Result:
        return run(self.place.garden, *arguments, "-n", self.place.namespace)

    def done(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stderr

    def refused(self, *arguments: str) -> str:
        result = self.run(*arguments)
        assert result.exit_code == 1, result.output
        return result.stderr


@pytest.fixture
def shoots(place: ShootPlace) -> Shoots:
    return Shoots(place)


def pending(shoot: Object) -> bool:
    return bool(metadata(shoot)["generation"] != at(shoot, "status", "observedGeneration"))


# --- one Shoot


def test_a_shoot_hibernates_and_wakes_up(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    assert f"✔ Shoot {shoots.place.namespace}/s: requested hibernation" in shoots.done("hibernate", "s")
    assert at(shoots.get("s"), "spec", "hibernation", "enabled") is True
    assert "it is to be hibernated already" in shoots.done("hibernate", "s")
    shoots.done("wake", "s")
    assert at(shoots.get("s"), "spec", "hibernation", "enabled") is False


@pytest.mark.parametrize(
    ("arguments", "last", "annotation"),
    [
        (("reconcile", "s"), SUCCEEDED, None),
        (("retry", "s"), FAILED, None),
        (("maintain", "s"), SUCCEEDED, "maintain"),
        (("rotate", "ca", "s", "--yes"), SUCCEEDED, "rotate-ca-start"),
    ],
    ids=["reconcile", "retry", "maintain", "rotate"],
)
def test_an_operation_is_requested(
    shoots: Shoots, arguments: tuple[str, ...], last: Object, annotation: str | None
) -> None:
    shoots.make("s", last)
    shoots.done(*arguments, "--dry-run")
    assert not annotations(shoots.get("s")).get(keys.OPERATION)
    assert not pending(shoots.get("s"))
    shoots.done(*arguments)
    assert annotations(shoots.get("s")).get(keys.OPERATION) == annotation
    assert annotation == "maintain" or pending(shoots.get("s"))


def test_what_has_no_effect_is_explained_before_it_is_written(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    shoots.make("failed", FAILED)
    shoots.make("young")
    where = f"-n {shoots.place.namespace}"
    before = shoots.get("s")
    assert "Reconcile has succeeded, so there is nothing to retry" in shoots.refused("retry", "s")
    refused = shoots.refused("reconcile", "failed")
    assert "only a retry has an effect" in refused
    assert f"then: kubectl gardener retry failed {where}" in refused
    assert "its creation has not begun" in shoots.refused("rotate", "ca", "young", "--yes")
    assert shoots.get("s") == before
    shoots.done("maintain", "s")
    pending_ = shoots.refused("reconcile", "s")
    assert "maintain is requested, and has not begun" in pending_
    assert annotations(shoots.get("s"))[keys.OPERATION] == "maintain"
    retry, wait = (shlex.split(each.rpartition("kubectl gardener ")[2]) for each in (refused, pending_))
    assert run(shoots.place.garden, *retry).exit_code == 0
    waited = run(shoots.place.garden, *wait, "--timeout", "1s")
    assert "not reached after 1 s: maintain is requested" in waited.stderr


def test_a_refusal_of_admission_is_the_error(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    refused = shoots.refused("rotate", "ca", "s", "--complete", "--yes")
    assert "all credentials of rotate-ca-complete must be in phase Prepared" in refused
    assert "admission webhook" not in refused
    assert shoots.refused("rotate", "ca", "s", "--complete", "--dry-run").count("must be in phase Prepared") == 1


def test_the_control_plane_moves_to_another_seed_and_back(shoots: Shoots) -> None:
    services = {"services": "100.104.0.0/13"}
    shoots.make("s", SUCCEEDED, provider={"type": shoots.place.name}, secretBindingName=None, networking=services)
    other = shoots.place.seed("-b")
    no_backup = shoots.place.seed("-c", has_backup=False)
    assert "backup is not configured" in shoots.refused("move", "s", "--to", no_backup, "--yes")
    assert "Seed no-such-seed not found" in shoots.refused("move", "s", "--to", "no-such-seed", "--yes")
    assert "there is no terminal to confirm" in shoots.refused("move", "s", "--to", other)
    shoots.done("move", "s", "--to", other, "--dry-run")
    assert spec(shoots.get("s"))["seedName"] == shoots.seed
    shoots.done("move", "s", "--to", other, "--yes")
    assert spec(shoots.get("s"))["seedName"] == other
    assert f"it moves to Seed {other} already" in shoots.done("move", "s", "--to", other, "--yes")
    shoots.done("move", "s", "--to", shoots.seed, "--yes")
    assert spec(shoots.get("s"))["seedName"] == shoots.seed


def test_a_seed_is_evacuated_until_a_move_fails_and_then_the_rest(shoots: Shoots) -> None:
    """One Shoot at a time; the test reports what the gardenlets of both Seeds would."""
    workerless = {"provider": {"type": shoots.place.name}, "networking": {"services": "100.104.0.0/13"}}
    other = shoots.place.seed("-b")
    for name in ("a", "b", "rotating"):
        shoots.make(name, SUCCEEDED, secretBindingName=None, **workerless)
    shoots.report("rotating", SUCCEEDED, credentials={"rotation": {"serviceAccountKey": {"phase": "Preparing"}}})
    status = ready_status()
    status["conditions"] += [{**each, "type": "BackupBucketsReady"} for each in status["conditions"]]
    shoots.place.patch(SEEDS, other, {"status": status}, status=True)
    evacuate = ("evacuate", shoots.seed, "--max-parallel", "1", "--timeout", "2m")

    def on(name: str, seed: str) -> bool:
        return bool(spec(shoots.get(name))["seedName"] == seed)

    def arrives(name: str, state: str) -> None:
        eventually(lambda: on(name, other), f"the move of {name}")
        shoots.report(name, SUCCEEDED | {"type": "Restore", "state": state}, seedName=other)

    planned = shoots.refused(*evacuate, "--dry-run")
    assert planned.count(f"requested the move to Seed {other} (dry run: nothing is stored)") == 2
    assert "rotating: a Shoot can't move while its credentials are rotated (serviceAccountKey: Preparing)" in planned
    assert "there is no terminal to confirm" in shoots.refused(*evacuate)
    assert on("a", shoots.seed)
    assert on("b", shoots.seed)

    with _background(shoots, *evacuate, "--yes") as stopped:
        arrives("a", "Failed")
        assert "3 Shoots: 1 failed, 1 not tried, 1 can't move now" in _end(stopped, 1)
    assert on("b", shoots.seed)

    # One that is on its way, as after the command has ended at any point, is waited for before another one begins.
    shoots.report("a", SUCCEEDED | {"type": "Migrate", "state": "Processing"})
    shoots.report("rotating", SUCCEEDED, credentials={"rotation": {"serviceAccountKey": {"phase": "Prepared"}}})
    with _background(shoots, *evacuate, "--yes") as resumed:
        assert resumed.stderr is not None
        while "a: Migrate Processing" not in resumed.stderr.readline():
            pass
        assert on("b", shoots.seed)
        for name in ("a", "b", "rotating"):
            arrives(name, "Succeeded")
        assert "3 Shoots: 3 moved" in _end(resumed, 0)
    assert f"Seed {shoots.seed} has no Shoots" in shoots.done(*evacuate)


def _background(shoots: Shoots, *arguments: str) -> "subprocess.Popen[str]":
    command = [*PROGRAM, *arguments, "-n", shoots.place.namespace]
    return subprocess.Popen(command, env=_environment(shoots), stderr=subprocess.PIPE, text=True)


def _end(process: "subprocess.Popen[str]", code: int) -> str:
    """The rest of what it prints."""
    _, printed = process.communicate(timeout=120)
    assert process.returncode == code, printed
    return printed


def test_a_deletion_has_to_be_confirmed(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    shoots.place.patch(SHOOTS, "s", {"metadata": {"finalizers": ["gardener"]}})
    refused = shoots.refused("delete", "s")
    assert (
        f"no terminal to confirm: This deletes for ever, with all data and backups, 1 Shoot: {shoots.place.namespace}/s"
        in refused
    )
    assert "--yes" in refused
    shoots.done("delete", "s", "--dry-run")
    assert not is_deleting(shoots.get("s"))
    assert keys.CONFIRM_DELETION not in annotations(shoots.get("s"))
    shoots.done("delete", "s", "--yes")
    assert is_deleting(shoots.get("s"))
    assert "it is being deleted already" in shoots.done("delete", "s", "--yes")
    assert "it is being deleted" in shoots.refused("hibernate", "s")


def test_a_deletion_is_confirmed_by_the_name_on_a_terminal(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    shoots.place.patch(SHOOTS, "s", {"metadata": {"finalizers": ["gardener"]}})
    assert "not confirmed; nothing is changed" in _typed(shoots, "y", "delete", "s")
    assert not is_deleting(shoots.get("s"))
    text = _typed(shoots, "s", "delete", "s")
    assert f"This deletes for ever, with all data and backups, 1 Shoot: {shoots.place.namespace}/s" in text
    assert is_deleting(shoots.get("s"))


def _typed(shoots: Shoots, answer: str, *arguments: str) -> str:
    """What a command prints, to whose question a user types an answer."""
    terminal, end = pty.openpty()
    command = [*PROGRAM, *arguments, "-n", shoots.place.namespace]
    try:
        os.write(terminal, f"{answer}\n".encode())
        done = subprocess.run(command, stdin=end, capture_output=True, text=True, env=_environment(shoots), check=False)
    finally:
        os.close(terminal)
        os.close(end)
    return done.stderr


def _environment(shoots: Shoots) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(shoots.place.garden.cluster.kubeconfig), "NO_COLOR": "1"}


# --- many Shoots


def test_many_shoots_are_changed_and_one_failure_is_the_exit_code(shoots: Shoots) -> None:
    for name in ("a", "b", "c"):
        shoots.make(name, SUCCEEDED)
    began = time.monotonic()
    assert "3 Shoots: 3 changed" in shoots.done("reconcile", "--all", "--rate", "4", "--dry-run")
    assert time.monotonic() - began > 0.4
    shoots.report("c", SUCCEEDED, constraints=[_not_possible()])
    shoots.place.patch(SHOOTS, "b", {"metadata": {"labels": {"team": "x"}}})
    assert "2 Shoots: 1 changed, 1 failed" in shoots.refused("hibernate", "b", "missing")
    result = shoots.refused("hibernate", "--all")
    assert "3 Shoots: 1 changed, 1 unchanged, 1 failed" in result
    assert "a webhook blocks it" in result
    assert [at(shoots.get(name), "spec", "hibernation", "enabled") for name in ("a", "b", "c")] == [True, True, None]
    shoots.done("wake", "-l", "team=x")
    assert [at(shoots.get(name), "spec", "hibernation", "enabled") for name in ("a", "b")] == [True, False]
    of_project = run(shoots.place.garden, "wake", "--all", "--project", shoots.place.name)
    assert "3 Shoots: 1 changed, 2 unchanged" in of_project.stderr
    assert "no Shoot is selected" in shoots.done("wake", "-l", "team=none")


def _not_possible() -> Object:
    moment = "2026-01-01T00:00:00Z"
    return {
        "type": "HibernationPossible",
        "status": "False",
        "reason": "ProblematicWebhooks",
        "message": "a webhook blocks it",
        "lastTransitionTime": moment,
        "lastUpdateTime": moment,
    }


def test_with_a_selector_shoots_that_have_not_failed_are_not_retried(shoots: Shoots) -> None:
    shoots.make("a", SUCCEEDED)
    shoots.make("b", FAILED)
    text = shoots.done("retry", "--all")
    assert "2 Shoots: 1 changed, 1 left out" in text
    assert [pending(shoots.get(name)) for name in ("a", "b")] == [False, True]


@pytest.mark.parametrize("arguments", [(), ("s", "--all"), ("-A",), ("s", "-A")])
def test_shoots_are_either_named_or_selected(shoots: Shoots, arguments: tuple[str, ...]) -> None:
    result = shoots.run("reconcile", *arguments)
    assert result.exit_code == 2
    assert "either names, or --all or -l LABELS" in result.stderr


# --- waiting


def test_waiting_ends_with_the_operation(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    shoots.done("reconcile", "s")
    results: list[Result] = []
    waiting = threading.Thread(target=lambda: results.append(_waited(shoots, "s")))
    waiting.start()
    shoots.report("s", SUCCEEDED | {"state": "Processing", "progress": 10, "description": "Deploying etcd"})
    shoots.report("s", SUCCEEDED)
    waiting.join(120)
    (result,) = results
    assert result.exit_code == 0, result.output
    assert "Reconcile Succeeded, 100 %" in result.stderr


def _waited(shoots: Shoots, *arguments: str) -> Result:
    return shoots.run("wait", *arguments, "--timeout", "2m")


def test_a_deletion_ends_with_the_shoot(shoots: Shoots) -> None:
    """Each state on the way is shown once: those of an attempt that is repeated alternate."""
    begun = {"type": "Delete", "state": "Processing", "progress": 10, "description": "Deleting etcd"}
    failed = begun | {"state": "Error", "description": "the bucket is away"}
    shoots.make("s", SUCCEEDED)
    shoots.place.patch(SHOOTS, "s", {"metadata": {"finalizers": ["gardener"]}})
    shoots.done("delete", "s", "--yes")
    shoots.report("s", begun)
    with _background(shoots, "wait", "s", "--timeout", "5m") as waiting:
        assert waiting.stderr is not None
        assert "Delete Processing, 10 %: Deleting etcd" in waiting.stderr.readline()
        shoots.report("s", failed)
        assert "Delete Error, 10 %: the bucket is away" in waiting.stderr.readline()
        for state in (begun, failed, begun | {"progress": 20}):
            shoots.report("s", state)
        assert "Delete Processing, 20 %: Deleting etcd" in waiting.stderr.readline()
        shoots.place.patch(SHOOTS, "s", {"metadata": {"finalizers": None}})
        assert waiting.wait(300) == 0
        assert waiting.stderr.read().endswith(f"✔ Shoot {shoots.place.namespace}/s: deleted\n")


def test_waiting_fails_with_the_operation_or_its_time(shoots: Shoots) -> None:
    shoots.make("s", FAILED)
    refused = shoots.refused("wait", "s")
    assert "Reconcile failed: no quota" in refused
    assert f"kubectl gardener why shoot s -n {shoots.place.namespace}" in refused
    shoots.make("young")
    late = shoots.refused("wait", "young", "--timeout", "1s")
    assert f"not reached after 1 s: waits for the gardenlet of Seed {shoots.seed}" in late
    assert "Shoot " in shoots.refused("wait", "absent")
    assert "✔" in shoots.done("wait", "absent", "--for", "deleted")
    assert "it is not being deleted" in shoots.refused("wait", "s", "--for", "deleted")


def test_waiting_for_conditions(shoots: Shoots) -> None:
    shoots.make("s", SUCCEEDED)
    shoots.report("s", SUCCEEDED, constraints=[_not_possible()])
    assert "HibernationPossible is False" in shoots.done("wait", "s", "--for", "condition=HibernationPossible=False")
    late = shoots.refused("wait", "s", "--for", "condition=HibernationPossible", "--timeout", "1s")
    assert "HibernationPossible is False: a webhook blocks it" in late
    assert "'sun' is nothing to wait for" in shoots.refused("wait", "s", "--for", "sun")


# --- the list


def test_shoots_with_problems_are_listed_first(shoots: Shoots) -> None:
    shoots.make("a", SUCCEEDED)
    shoots.make("b", FAILED)
    shoots.make("c")
    shoots.make("d", SUCCEEDED)
    shoots.report("d", SUCCEEDED, hibernated=True)
    result = shoots.run("list")
    rows = [line.split()[1:3] for line in result.stdout.splitlines()]
    assert rows == [
        ["NAME", "STATE"],
        ["b", "ReconcileFailed"],
        ["c", "Pending"],
        ["a", "Healthy"],
        ["d", "Hibernated"],
    ]
    assert "no quota" in result.stdout
    assert "4 Shoots, 1 with problems" in result.stderr
    named = shoots.run("list", "--problems", "-o", "name").stdout
    assert named.splitlines() == [f"{shoots.place.namespace}/{name}" for name in ("b", "c")]
    everywhere = json.loads(run(shoots.place.garden, "list", "-o", "json").stdout)
    assert {metadata(each)["namespace"] for each in everywhere["items"]} >= {shoots.place.namespace}


def test_a_member_lists_the_shoots_of_own_projects(garden: Garden, shoots: Shoots) -> None:
    user = f"member-{shoots.place.name}"
    shoots.make("s", SUCCEEDED)
    other = ShootPlace(garden)
    other.shoot("hidden", seedName=other.seed())
    given = role_binding(
        user,
        of_user(user),
        of=CLUSTER_ROLES,
        to="gardener.cloud:system:project-member",
        namespace=shoots.place.namespace,
    )
    shoots.place.create(ROLE_BINDINGS, user, **{name: given[name] for name in ("roleRef", "subjects")})
    result = eventually(lambda: _succeeded(shoots.run("list", "--as", user)), "the role")
    assert " s " in result.stdout
    alone = run(garden, "list", "--as", user)
    assert "you may not list Projects" in alone.stderr
    garden.allow(user, "list", PROJECTS)
    found = run(garden, "list", "--as", user)
    assert found.exit_code == 0, found.output
    assert [line.split()[:2] for line in found.stdout.splitlines()[1:]] == [[shoots.place.namespace, "s"]]
    assert "you may not list Shoots of" in found.stderr
    other.remove()


def _succeeded(result: Result) -> Result | None:
    return result if result.exit_code == 0 else None


# --- the archive for support

HIDDEN = "c2VjcmV0LW9mLWEtdGVuYW50LXRoYXQtbm9ib2R5LW1heS1zZWU"


def test_the_archive_has_the_state_and_no_secrets(shoots: Shoots, tmp_path: Path) -> None:
    name = shoots.make("s", FAILED, metadata={"annotations": {"example.com/credentials": HIDDEN}})
    shoots.place.create(SECRETS, "own", stringData={"password": HIDDEN})
    error = {"description": f"login failed: password={HIDDEN}", "codes": ["ERR_INFRA_UNAUTHENTICATED"]}
    shoots.report(name, FAILED, lastErrors=[error])
    own = SHOOTS.reference(namespace=shoots.place.namespace, name=name, uid=metadata(shoots.get(name))["uid"])
    message = f"Authorization: Bearer {HIDDEN} was refused by the provider"
    shoots.place.create(EVENTS, "e", involvedObject=own, reason="Refused", message=message, type="Warning")
    file = tmp_path / "s.tar.gz"
    audit = shoots.place.garden.cluster.audit()
    try:
        result = shoots.run("diag", name, "--file", str(file))
        read = {call.resource for call in audit.calls(user_agent="kubectl-gardener")}
    finally:
        audit.close()
    assert result.exit_code == 0, result.output
    assert "shoots" in read
    assert not read & {"secrets", "internalsecrets"}
    assert result.stdout == f"{file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    contents = _contents(file)
    assert all(HIDDEN.encode() not in each for each in contents.values())
    found = {name: json.loads(each) for name, each in contents.items()}
    assert found["shoot"]["status"]["lastErrors"][0]["description"] == "login failed: password=[redacted]"
    assert found["shoot"]["status"]["lastOperation"]["state"] == "Failed"
    assert [metadata(each)["name"] for each in found["seeds"]] == [shoots.seed]
    assert metadata(found["project"])["name"] == shoots.place.name
    assert [each["reason"] for each in found["events"]] == ["Refused"]
    assert any(each["about"] == "error" for each in found["why"])
    assert found["versions"]["garden"].startswith("v1.")
    assert "cannot be written: File exists" in shoots.refused("diag", name, "--file", str(file))


def test_the_archive_has_the_objects_in_the_seed(shoots: Shoots, tmp_path: Path) -> None:
    """The seed is the same cluster here, without the kinds of extensions."""
    name = shoots.make("s", SUCCEEDED)
    shoots.report(name, SUCCEEDED, technicalID=shoots.place.namespace)
    file = tmp_path / "s.tar.gz"
    seed = shoots.place.garden.cluster.kubeconfig
    text = shoots.done("diag", name, "--file", str(file), "--seed-kubeconfig", str(seed))
    found = {name: json.loads(each) for name, each in _contents(file).items()}
    assert found["versions"]["seed"] == found["versions"]["garden"]
    assert found["cluster"] is None
    assert "not included: the flow: no gardenlet holds the Lease" in text


def _contents(file: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(file) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None
            assert member.name == f"s-diag/{Path(member.name).name}"
            found[Path(member.name).stem] = stream.read()
    return found


# --- docs/operating-shoots.md

PAGE = Path(__file__).parents[2] / "docs" / "operating-shoots.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def acting_gardenlet(shoots: Shoots, name: str) -> Iterator[None]:
    """Report the success of each request for a Shoot, until the end of the block."""
    ends = threading.Event()

    def act() -> None:
        while not ends.wait(0.2):
            shoot = shoots.get(name)
            if pending(shoot):
                shoots.place.patch(SHOOTS, name, {"metadata": {"annotations": {keys.OPERATION: None}}})
                asleep = at(shoot, "spec", "hibernation", "enabled") is True
                available = _not_possible() | {"type": "APIServerAvailable", "status": "True"}
                shoots.report(name, SUCCEEDED, hibernated=asleep, conditions=[available])

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def test_the_commands_of_the_page_work(shoots: Shoots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that target a cluster are in test_garden_kubeconfigs.py."""
    monkeypatch.chdir(tmp_path)
    shoots.make("rose", metadata={"labels": {"team": "blue"}})
    commands = [line for block in _BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    own = [re.sub(r"\bdev\b", shoots.place.name, each) for each in commands if each.startswith("kubectl gardener ")]
    with acting_gardenlet(shoots, "rose"):
        eventually(lambda: not pending(shoots.get("rose")), "the creation")
        for command in own:
            result = run(shoots.place.garden, *shlex.split(command)[2:])
            assert result.exit_code == 0, f"{command}: {result.output}"
    assert {each.split()[2] for each in own} >= {"list", "hibernate", "wake", "reconcile", "rotate", "wait", "diag"}
    assert len(list(tmp_path.glob("rose-*.tar.gz"))) == 1
