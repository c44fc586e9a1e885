"""Rules of the commands that change, wait for and list Shoots, in tables."""

from typing import Any

import pytest

from gardener import keys
from gardener.garden.scheduling import Decision
from kit.garden_objects import shoot
from kube.objects import Object
from kubectl.errors import UserError
from kubectl.garden import obstacles, waiting
from kubectl.garden.commands.rotate import operation_of
from kubectl.garden.evacuation import step_of
from kubectl.garden.obstacles import Kind
from kubectl.garden.overview import state_of

WORKER = {"workers": [{"name": "w"}]}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def made(
    kind: str = "Reconcile", state: str = "Succeeded", *, pending: str = "", meta: Object | None = None, **status: Any
) -> Object:
    """A Shoot on Seed `a` whose status is about the present spec. Args: pending: its operation annotation."""
    notes = {keys.OPERATION: pending} if pending else {}
    last = {"type": kind, "state": state, "progress": 50, "description": "doing it"} if kind else None
    found = shoot(
        annotations=notes,
        seedName="a",
        provider=WORKER,
        status={"lastOperation": last, "observedGeneration": 1, "seedName": "a", **status},
        generation=1,
    )
    found["metadata"] |= {"generation": 1, **(meta or {})}
    found["spec"].pop("generation", None)
    return found


def confirmed() -> Object:
    return {**DELETED, "annotations": {keys.CONFIRM_DELETION: "true"}}


@pytest.mark.parametrize(
    ("rule", "subject", "kind", "text"),
    [
        (obstacles.reconciliation, made(), None, ""),
        (obstacles.reconciliation, made(state="Processing"), None, ""),
        (obstacles.reconciliation, made(state="Failed"), Kind.IMPOSSIBLE, "only a retry has an effect"),
        (obstacles.reconciliation, made(kind=""), Kind.IMPOSSIBLE, "its creation has not begun"),
        (obstacles.reconciliation, made(pending="maintain"), Kind.IMPOSSIBLE, "maintain is requested"),
        (obstacles.reconciliation, made(pending="reconcile"), Kind.DONE, "requested already"),
        (obstacles.reconciliation, made(pending="retry"), None, ""),
        (obstacles.retry, made(state="Failed"), None, ""),
        (obstacles.retry, made(state="Failed", pending="retry"), None, ""),
        (obstacles.retry, made(state="Failed", pending="reconcile"), None, ""),
        (obstacles.retry, made(state="Error"), Kind.UNNECESSARY, "tries again by itself"),
        (obstacles.retry, made(state="Processing"), Kind.UNNECESSARY, "Reconcile is processing"),
        (obstacles.retry, made(), Kind.UNNECESSARY, "nothing to retry"),
        (obstacles.retry, made(kind=""), Kind.UNNECESSARY, "no operation has begun"),
        (obstacles.retry, made("Delete", "Failed", meta=DELETED), None, ""),
        (obstacles.maintenance, made(), None, ""),
        (obstacles.maintenance, made(meta=DELETED), Kind.IMPOSSIBLE, "it is being deleted"),
        (obstacles.rotation("rotate-ca-start"), made(), None, ""),
        (obstacles.rotation("rotate-ca-start"), made(state="Failed"), Kind.IMPOSSIBLE, "only a retry"),
        (obstacles.rotation("rotate-ca-start"), made(pending="rotate-ca-start"), Kind.DONE, "requested already"),
        (obstacles.rotation("rotate-ssh-keypair"), made(), None, ""),
        (obstacles.rotation("rotate-ssh-keypair"), shoot(status={"lastOperation": {"state": "Succeeded"}}), Kind.UNNECESSARY, "no SSH access"),
        (obstacles.hibernation(enabled=True), made(), None, ""),
        (obstacles.hibernation(enabled=False), made(), Kind.DONE, "to be awake already"),
        (obstacles.move("b"), made(), None, ""),
        (obstacles.move("a"), made(), Kind.DONE, "it is on Seed a already"),
        (obstacles.move("a"), made(seedName="b"), Kind.DONE, "it moves to Seed a already"),
        (obstacles.move("a"), shoot(), Kind.IMPOSSIBLE, "it is on no Seed yet"),
        (obstacles.move("b"), made(meta=DELETED), Kind.IMPOSSIBLE, "it is being deleted"),
        (obstacles.deletion, made(), None, ""),
        (obstacles.deletion, made(meta=DELETED), None, ""),
        (obstacles.deletion, made(meta=confirmed()), Kind.DONE, "it is being deleted already"),
    ],
)  # fmt: skip
def test_requests_without_effect_are_recognized(
    rule: obstacles.Rule, subject: Object, kind: Kind | None, text: str
) -> None:
    found = rule(subject)
    assert (found and found.kind) == kind
    assert text in (found.text if found else "")


@pytest.mark.parametrize(
    ("goal", "subject", "ends", "text"),
    [
        ("operation", made(), True, "Reconcile Succeeded"),
        ("operation", made(state="Processing"), None, "Reconcile Processing, 50 %: doing it"),
        ("operation", made(state="Error"), None, "Reconcile Error"),
        ("operation", made(state="Failed"), False, "Reconcile failed: doing it"),
        ("operation", made(state="Failed", pending="retry"), False, "Reconcile failed"),
        ("operation", made(state="Failed", pending="reconcile"), False, "Reconcile failed"),
        ("operation", made(pending="retry"), True, "Reconcile Succeeded"),
        ("operation", made(observedGeneration=0), None, "waits for the gardenlet of Seed a"),
        ("operation", made(state="Failed", observedGeneration=0), None, "waits for the gardenlet"),
        ("operation", made(pending="maintain"), None, "maintain is requested"),
        ("operation", made("Migrate"), None, "continues on Seed a"),
        ("operation", made(seedName="b"), None, "continues on Seed a"),
        ("operation", None, False, "does not exist"),
        ("deleted", None, True, "deleted"),
        ("deleted", made(), False, "not being deleted"),
        ("deleted", made("Delete", "Processing", meta=DELETED), None, "Delete Processing"),
        ("hibernated", made(), False, "request it: kubectl gardener hibernate s -n garden-dev"),
        ("awake", made(), True, "awake"),
        ("awake", made(hibernated=True), None, "Reconcile Succeeded"),
        ("condition=A", made(), None, "A is not reported yet"),
        ("condition=A", made(conditions=[{"type": "A", "status": "False", "message": "m"}]), None, "A is False: m"),
        ("condition=A=False", made(conditions=[{"type": "A", "status": "False"}]), True, "A is False"),
        ("condition=B", made(constraints=[{"type": "B", "status": "True"}]), True, "B is True"),
    ],
)
def test_goals(goal: str, subject: Object | None, ends: bool | None, text: str) -> None:
    """Args: ends: whether it is reached or can't be; None: neither."""
    found = waiting.goal_of(goal)(subject)
    assert text in found.text
    assert (True if found.reached else False if found.hopeless else None) is ends


@pytest.mark.parametrize(
    ("subject", "word", "message"),
    [
        (made(), "Healthy", ""),
        (made(hibernated=True), "Hibernated", ""),
        (made(state="Failed"), "ReconcileFailed", "doing it"),
        (made("Create", "Error", lastErrors=[{"description": "a\nb"}]), "CreateError", "a b"),
        (made(state="Processing"), "ReconcileProcessing", "50 %: doing it"),
        (made(conditions=[{"type": "A", "status": "False", "message": "m"}]), "Unhealthy", "A: m"),
        (made(conditions=[{"type": "A", "status": "Progressing"}]), "Healthy", ""),
        (made(observedGeneration=0), "Pending", "waits for the gardenlet of Seed a"),
        (shoot(), "Pending", "waits for a Seed"),
        (made(meta=DELETED), "Unconfirmed", "the deletion waits for its confirmation"),
        (made("Delete", "Processing", meta=confirmed()), "DeleteProcessing", "50 %: doing it"),
    ],
)
def test_the_state_in_a_list(subject: Object, word: str, message: str) -> None:
    found = state_of(subject)
    assert (found.word, found.message) == (word, message)


def moving(**fields: Any) -> Object:
    found = made(**fields)
    return {**found, "spec": {**found["spec"], "seedName": "c"}}


@pytest.mark.parametrize(
    ("subject", "to", "problem", "has_begun"),
    [
        (made(), "b", "", False),
        (made(state="Failed"), "b", "", False),
        (made("Restore", "Error"), "b", "", False),
        (made("Create", "Error"), "", "a Shoot can't move before it has been created", False),
        (made(meta=DELETED), "", "it is being deleted", False),
        # Its destination stays, and its operation ends there.
        (moving(), "c", "", True),
        (moving(kind="Migrate", state="Processing", meta=DELETED), "c", "", True),
    ],
)
def test_what_happens_to_a_shoot_of_a_seed_that_is_evacuated(
    subject: Object, to: str, problem: str, has_begun: bool
) -> None:
    found = step_of(subject, leaves="a", choose=lambda _: Decision(seed="b"))
    assert (found.to, found.has_begun) == (to, has_begun)
    assert found.problem.startswith(problem)
    assert bool(found.problem) is bool(problem)


def test_a_shoot_without_a_destination_stays() -> None:
    found = step_of(made(), leaves="a", choose=lambda _: Decision(message="none fits"))
    assert (found.to, found.problem) == ("", "none fits")


def rotation(what: str, *, complete: bool = False, keep_nodes: bool = False, pools: tuple[str, ...] = ()) -> str:
    return operation_of(what, complete=complete, keep_nodes=keep_nodes, pools=pools)


def test_operations_of_rotations() -> None:
    assert rotation("credentials") == "rotate-credentials-start"
    assert rotation("ca", complete=True) == "rotate-ca-complete"
    assert rotation("ca", keep_nodes=True) == "rotate-ca-start-without-workers-rollout"
    assert rotation("ssh-keypair") == "rotate-ssh-keypair"
    assert rotation("workers", pools=("a", "b")) == "rotate-rollout-workers=a,b"


@pytest.mark.parametrize(
    ("what", "flags"),
    [
        ("workers", {}),
        ("ca", {"pools": ("a",)}),
        ("workers", {"pools": ("a",), "complete": True}),
        ("ssh-keypair", {"complete": True}),
        ("etcd-encryption-key", {"keep_nodes": True}),
        ("ca", {"complete": True, "keep_nodes": True}),
    ],
)
def test_flags_of_rotations_that_do_not_fit(what: str, flags: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        rotation(what, **flags)
