"""Which revision a rollback takes, and which Secrets it does not write."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardener.managed_resource.history import revision_secret
from kit.objects import managed_resource, secret
from kube.objects import Key, Object
from kubectl.errors import UserError
from kubectl.mr.commands.history import lines
from kubectl.mr.commands.rollback import chosen, manager_of, problem_of
from kubectl.mr.revisions import current, json_of, number_of
from kubectl.style import rendered

OWN = Key("garden", "shop")
SECRET_VALUE = b"hunter2"


def revision(number: int, digest: str, cause: str = "", size: int = 1) -> Object:
    marks = {"kubernetes.io/change-cause": cause} if cause else {}
    of = managed_resource("garden/shop", uid="u", annotations=marks)
    return revision_secret(of, number=number, digest=digest, names=["shop"], value=SECRET_VALUE * size)


HISTORY = [revision(4, "a"), revision(5, "b"), revision(6, "a")]


@pytest.mark.parametrize(
    ("to", "holds_newest", "expected"),
    [(0, True, 5), (0, False, 6), (4, True, 4), (6, True, 6), (5, False, 5)],
)
def test_which_revision_is_taken(to: int, holds_newest: bool, expected: int) -> None:
    assert number_of(chosen(HISTORY, OWN, to, holds_newest=holds_newest)) == expected


@pytest.mark.parametrize(
    ("revisions", "to", "holds_newest", "text", "hint"),
    [
        ([], 0, False, "no applied version of ManagedResource garden/shop is kept", "kubectl mr history shop"),
        (HISTORY, 3, False, "there is no revision 3", "there are: 4, 5, 6"),
        (HISTORY[:1], 0, True, "there is no revision with another content", "there are: 4"),
        ([HISTORY[0], HISTORY[2]], 0, True, "there is no revision with another content", "there are: 4, 6"),
    ],
)
def test_there_may_be_none(revisions: list[Object], to: int, holds_newest: bool, text: str, hint: str) -> None:
    with pytest.raises(UserError, match=text) as raised:
        chosen(revisions, OWN, to, holds_newest=holds_newest)
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("marks", "manager"),
    [
        ({}, ""),
        ({"labels": {"app": "shop"}, "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, ""),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "infra"}}, "the Kustomization infra of Flux"),
        ({"labels": {"argocd.argoproj.io/instance": "infra"}}, "the Application infra of Argo CD"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "infra:x"}}, "Argo CD (infra:x)"),
        ({"annotations": {"meta.helm.sh/release-name": "shop"}}, "the release shop of Helm"),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "Helm"),
        ({"annotations": {"resources.gardener.cloud/origin": "garden/all"}}, "the ManagedResource garden/all"),
        ({"ownerReferences": [{"kind": "ExternalSecret", "name": "shop"}]}, "ExternalSecret shop"),
    ],
)
def test_who_manages_a_secret(marks: dict[str, Any], manager: str) -> None:
    found = secret("garden/shop", **marks)
    assert manager_of(found) == manager
    problem = problem_of([found], "do this")
    assert (problem is None) == (not manager)
    if problem:
        assert "where it is managed" in problem.hint


def test_what_can_not_be_written_comes_with_what_to_do() -> None:
    problem = problem_of([secret("garden/a"), secret("garden/b", immutable=True)], "do this")
    assert problem
    assert problem.lines[0] == "Secret garden/b is immutable"
    assert problem.hint == "write the manifests into a new Secret: do this"


@pytest.mark.parametrize(("checksum", "expected"), [("a", 6), ("b", 5), ("c", 0), (None, 0)])
def test_which_one_is_applied(checksum: str | None, expected: int) -> None:
    status = {"secretsDataChecksum": checksum} if checksum else {}
    assert current(HISTORY, managed_resource("garden/shop", status=status)) == expected


def test_the_list_shows_a_cause_once_and_no_content() -> None:
    found = [
        revision(1, "a" * 64),
        revision(2, "b" * 64, "new prices"),
        revision(3, "c" * 64, "new prices"),
        revision(4, "d" * 64, "rollback to revision 1", size=1 << 18),
    ]
    for each in found:
        each["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    now = datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert [rendered(line, colors=False).split() for line in lines(found, 3, now, wide=True)] == [
        ["REVISION", "AGE", "DIGEST", "SECRETS", "KEPT", "IN", "CAUSE"],
        ["1", "60m", "a" * 12, "shop", "shop-history-1"],
        ["2", "60m", "b" * 12, "shop", "shop-history-2", "new", "prices"],
        ["3", "(applied)", "60m", "c" * 12, "shop", "shop-history-3"],
        ["4", "60m", "d" * 12, "shop", "shop-history-4", "not", "kept:", "too", "large"],
    ]
    data = json_of(found[3], applied=3)
    assert data["notKept"].startswith("it has")
    assert (data["revision"], data["applied"], data["cause"]) == (4, False, "rollback to revision 1")
