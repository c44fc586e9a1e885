"""Deleting one object of a protected kind needs a confirmation. Collections are tried with a real API server."""

from typing import Any, cast

import pytest

from config.resource_manager.webhooks import CRDDeletionProtection
from kit.webhooks.mutating import request
from kube.objects import Object
from kube.runtime.client import Client
from webhooks.admission import Allowed, Answer, Denied, Errored, Kind
from webhooks.handlers import crd_deletion_protection

EXTENSIONS = "extensions.gardener.cloud"
REFUSAL = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
NOT_PROTECTED = Allowed("resource is not deletion-protected")
PLURALS = (
    *("backupbuckets", "backupentries", "containerruntimes", "controlplanes", "dnsrecords", "extensions"),
    *("infrastructures", "networks", "operatingsystemconfigs", "selfhostedshootexposures", "workers"),
)


async def ask(
    obj: Any,
    *,
    group: str = EXTENSIONS,
    version: str = "v1alpha1",
    resource: str = "infrastructures",
    operation: str = "DELETE",
    coming: Any = None,
    protect_bastions: bool = False,
) -> Answer:
    kind = Kind(group, version, "Infrastructure")
    requested = request(coming, old=obj, kind=kind, plural=resource, name="i", operation=operation)
    settings = CRDDeletionProtection(enabled=True, protect_bastions=protect_bastions)
    # A client that names an object is answered without asking the API server.
    handle = crd_deletion_protection.handler(settings, cast("Client", None))
    return await handle(requested)


def infrastructure(confirmation: str | None = None) -> Object:
    annotations = {} if confirmation is None else {"confirmation.gardener.cloud/deletion": confirmation}
    return {"metadata": {"name": "i", "namespace": "ns", "annotations": annotations}}


@pytest.mark.parametrize("value", ["1", "t", "T", "true", "TRUE", "True"])
async def test_what_is_confirmed_may_be_deleted(value: str) -> None:
    assert await ask(infrastructure(value)) == Allowed()


@pytest.mark.parametrize(
    ("obj", "name"),
    [
        *((infrastructure(value), "ns/i") for value in (None, "", "0", "false", "tRue", "yes", " true")),
        ({"metadata": {"name": "b"}}, "b"),
    ],
)
async def test_what_is_not_confirmed_is_refused_by_name(obj: Object, name: str) -> None:
    assert await ask(obj) == Denied(f"{REFUSAL}: Infrastructure {name}")


@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {"annotations": None}}], ids=str)
async def test_an_object_without_annotations_is_not_confirmed(obj: Object) -> None:
    answer = await ask(obj)
    assert isinstance(answer, Denied)
    assert answer.message.startswith(REFUSAL)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "CONNECT", ""])
async def test_other_operations_are_allowed(operation: str) -> None:
    assert await ask(infrastructure(), operation=operation) == Allowed("operation is not DELETE")


@pytest.mark.parametrize(
    ("group", "version", "resource"),
    [
        *((EXTENSIONS, "v1alpha1", plural) for plural in PLURALS),
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        ("apiextensions.k8s.io", "v1beta1", "customresourcedefinitions"),
        ("druid.gardener.cloud", "v1alpha1", "etcds"),
    ],
)
async def test_extension_resources_crds_and_etcds_are_protected(group: str, version: str, resource: str) -> None:
    assert isinstance(await ask(infrastructure(), group=group, version=version, resource=resource), Denied)


@pytest.mark.parametrize(
    ("group", "version", "resource"),
    [
        (EXTENSIONS, "v1alpha1", "clusters"),
        (EXTENSIONS, "v1", "infrastructures"),
        (EXTENSIONS, "v1alpha1", "Infrastructures"),
        ("", "v1", "configmaps"),
        ("", "v1alpha1", "infrastructures"),
    ],
)
async def test_other_resources_are_not(group: str, version: str, resource: str) -> None:
    assert await ask(infrastructure(), group=group, version=version, resource=resource) == NOT_PROTECTED


async def test_bastions_are_protected_if_that_is_wanted() -> None:
    assert await ask(infrastructure(), resource="bastions") == NOT_PROTECTED
    assert isinstance(await ask(infrastructure(), resource="bastions", protect_bastions=True), Denied)
    assert await ask(infrastructure("true"), resource="bastions", protect_bastions=True) == Allowed()


async def test_the_object_that_is_going_counts_before_any_other() -> None:
    assert await ask(infrastructure("true"), coming=infrastructure()) == Allowed()
    assert await ask(None, coming=infrastructure("true")) == Allowed()
    assert await ask(None) == Errored(400, "no object found in admission request")


@pytest.mark.parametrize(
    "obj",
    [1, "x", [], {"metadata": []}, {"metadata": {"annotations": []}}, {"metadata": {"annotations": {"a": 1}}}],
    ids=str,
)
async def test_what_is_no_object_cannot_be_checked(obj: Any) -> None:
    answer = await ask(obj)
    assert isinstance(answer, Errored)
    assert answer.code == 400
    assert answer.message.startswith("Expected ")
