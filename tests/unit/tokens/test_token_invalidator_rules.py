"""Which labels the Secrets of ServiceAccounts are to have, and who uses them."""

import pytest

from agent.resource_manager.token_invalidator.controller import affects_secrets
from agent.resource_manager.token_invalidator.rules import (
    SERVICE_ACCOUNT_NAME,
    SERVICE_ACCOUNT_UID,
    Account,
    Labelled,
    belongs_to,
    needed_labels,
    used_secrets,
)
from gardener import keys
from kube.objects import Key, Object
from kube.runtime.cache import Change

PURPOSE = {keys.PURPOSE: "token-invalidator"}
BOTH = {**PURPOSE, keys.TOKEN_INVALIDATOR_CONSIDER: "true"}


def account(automount: bool | None = None, **labels: str) -> Account:
    obj: Object = {"metadata": {"uid": "1", "labels": labels}, "secrets": [{"name": "s"}, {}]}
    if automount is not None:
        obj["automountServiceAccountToken"] = automount
    return Account.of(obj)


def secret(labels: dict[str, str], uid: str = "1") -> Labelled:
    annotations = {SERVICE_ACCOUNT_NAME: "sa", SERVICE_ACCOUNT_UID: uid}
    found = Labelled.of({"metadata": {"namespace": "n", "name": "s", "labels": labels, "annotations": annotations}})
    assert found is not None
    return found


SKIPPED = account(False, **{keys.TOKEN_INVALIDATOR_SKIP: "false"})


@pytest.mark.parametrize(
    ("of", "having", "wanted"),
    [
        (account(None), {}, PURPOSE),
        (account(True), {}, PURPOSE),
        (account(False), {}, BOTH),
        (account(False), PURPOSE, {keys.TOKEN_INVALIDATOR_CONSIDER: "true"}),
        (account(False), BOTH, {}),
        (account(False), {**PURPOSE, keys.TOKEN_INVALIDATOR_CONSIDER: "no"}, {}),
        (SKIPPED, {}, PURPOSE),
        (SKIPPED, BOTH, {keys.TOKEN_INVALIDATOR_CONSIDER: None}),
        (account(True), BOTH, {keys.TOKEN_INVALIDATOR_CONSIDER: None}),
        (account(None), BOTH, {keys.TOKEN_INVALIDATOR_CONSIDER: None}),
        (account(True), PURPOSE, {}),
        (account(False), {keys.PURPOSE: "token-requestor"}, {keys.TOKEN_INVALIDATOR_CONSIDER: "true"}),
        (account(True), {keys.PURPOSE: "token-requestor"}, {}),
    ],
)
def test_labels_follow_the_account(of: Account, having: dict[str, str], wanted: dict[str, str | None]) -> None:
    assert needed_labels(secret(having), of) == wanted


@pytest.mark.parametrize(("uid", "wanted"), [("1", True), ("", True), ("2", False)])
def test_a_secret_belongs_to_the_account_with_its_uid(uid: str, wanted: bool) -> None:
    assert belongs_to(secret({}, uid), account()) is wanted


def test_a_secret_without_the_annotation_is_none_of_ours() -> None:
    assert Labelled.of({"metadata": {"name": "s"}}) is None
    assert Labelled.of({"metadata": {"name": "s", "annotations": {SERVICE_ACCOUNT_NAME: ""}}}) is None


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (account(False), account(False), False),
        (account(False), account(True), True),
        (account(None), account(True), True),
        (account(None), account(False), True),
        (account(False), SKIPPED, True),
        (SKIPPED, account(False, **{keys.TOKEN_INVALIDATOR_SKIP: "b"}), True),
        (account(False, other="a"), account(False, other="b"), False),
        (None, account(False), True),
        (account(False), None, False),
    ],
)
def test_changes_of_its_settings_affect_its_secrets(old: Account | None, new: Account | None, wanted: bool) -> None:
    assert affects_secrets(Change(Key("n", "a"), old, new, initial=False)) is wanted


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, False),
        ({"volumes": [{"secret": {"secretName": "s"}}]}, True),
        ({"volumes": [{"secret": {"secretName": "other"}}, {"configMap": {"name": "s"}}]}, False),
        ({"volumes": [{"projected": {"sources": [{"secret": {"name": "s"}}]}}]}, True),
        ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "s"}}]}}]}, False),
        ({"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}, True),
        ({"initContainers": [{"env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}]}, True),
        ({"ephemeralContainers": [{"env": [{"name": "a", "value": "s"}]}]}, False),
    ],
)
def test_pods_use_secrets_in_several_ways(spec: Object, wanted: bool) -> None:
    assert ("s" in used_secrets({"spec": spec, "status": {"phase": "Running"}})) is wanted
    assert ("s" in used_secrets({"spec": spec})) is wanted
    assert used_secrets({"spec": spec, "status": {"phase": "Succeeded"}}) == set()
    assert used_secrets({"spec": spec, "status": {"phase": "Failed"}}) == set()
