"""What makes a Project a used one."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from agent.controller_manager.common import api
from agent.controller_manager.common.api import BACKUP_ENTRIES_VIEW
from agent.controller_manager.project.stale import Usage
from gardener.api.garden import (
    BACKUP_ENTRIES,
    CREDENTIALS_BINDINGS,
    QUOTAS,
    SECRET_BINDINGS,
    WORKLOAD_IDENTITIES,
)
from kit.garden_objects import shoot
from kube.objects import Object
from kube.resources import SECRETS, Resource
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, ListEnds, Present

OWN, OTHER = "garden-dev", "garden-other"
SECRET_BINDING, CREDENTIALS_BINDING = (
    "reference.gardener.cloud/secretbinding",
    "reference.gardener.cloud/credentialsbinding",
)


elsewhere = partial(shoot, f"{OTHER}/s")


def made(resource: Resource, name: str, namespace: str = OWN, *labels: str, **fields: Any) -> Object:
    marks = {each.partition("=")[0]: each.partition("=")[2] or "true" for each in labels}
    meta = {"name": name, "namespace": namespace, "labels": marks, "resourceVersion": "1"}
    return {**resource.type_meta, "metadata": meta, **fields}


def secret_binding(secret: str = "cred", **fields: Any) -> Object:
    reference = {"name": secret, "namespace": OWN}
    return made(SECRET_BINDINGS, "b", OTHER, **({"secretRef": reference} | fields))


def credentials_binding(kind: Resource = SECRETS, **fields: Any) -> Object:
    reference = {**kind.type_meta, "name": "cred", "namespace": OWN}
    return made(CREDENTIALS_BINDINGS, "b", OTHER, **({"credentialsRef": reference} | fields))


QUOTA = made(QUOTAS, "q")
OF_QUOTA: Object = {"quotas": [{"name": "q", "namespace": OWN}]}
ELSEWHERE = {"name": "cred", "namespace": OTHER}


def usage(objects: Sequence[Object]) -> Usage:
    def filled(view: View[Any]) -> Store[Any]:
        store = Store(view)
        source = store.source("")
        source.apply(ListBegins(1))
        for obj in objects:
            if obj["kind"] == view.resource.kind:
                source.apply(Present(obj))
        source.apply(ListEnds(1))
        return store

    return Usage(
        shoots=filled(api.SHOOTS_VIEW),
        backup_entries=filled(BACKUP_ENTRIES_VIEW),
        secrets=filled(api.SECRETS_VIEW),
        workload_identities=filled(api.WORKLOAD_IDENTITIES_VIEW),
        quotas=filled(api.QUOTAS_VIEW),
        secret_bindings=filled(api.SECRET_BINDINGS_VIEW),
        credentials_bindings=filled(api.CREDENTIALS_BINDINGS_VIEW),
    )


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], ""),
        ([shoot(f"{OWN}/s")], "Shoot garden-dev/s"),
        ([elsewhere()], ""),
        ([made(BACKUP_ENTRIES, "e")], "BackupEntry garden-dev/e"),
        ([made(BACKUP_ENTRIES, "e", OTHER)], ""),
        # Secrets that Shoots of other Projects use
        ([made(SECRETS, "cred", OWN, SECRET_BINDING), secret_binding(), elsewhere(secretBindingName="b")], "Secret"),
        ([made(SECRETS, "cred", OWN, SECRET_BINDING), secret_binding()], ""),
        ([made(SECRETS, "cred", OWN, SECRET_BINDING), secret_binding(), elsewhere(secretBindingName="c")], ""),
        ([made(SECRETS, "cred", OWN, SECRET_BINDING), secret_binding(), elsewhere(credentialsBindingName="b")], ""),
        ([made(SECRETS, "cred", OWN), secret_binding(), elsewhere(secretBindingName="b")], ""),
        ([made(SECRETS, "cred", OWN, CREDENTIALS_BINDING), secret_binding(), elsewhere(secretBindingName="b")], ""),
        (
            [
                made(SECRETS, "cred", OWN, SECRET_BINDING, "gardener.cloud/role=kubeconfig"),
                secret_binding(),
                elsewhere(secretBindingName="b"),
            ],
            "",
        ),
        (
            [
                made(SECRETS, "cred", OWN, SECRET_BINDING, "gardener.cloud/role=other"),
                secret_binding(),
                elsewhere(secretBindingName="b"),
            ],
            "Secret",
        ),
        (
            [
                made(SECRETS, "cred", OWN, CREDENTIALS_BINDING),
                credentials_binding(),
                elsewhere(credentialsBindingName="b"),
            ],
            "Secret",
        ),
        (
            [
                made(WORKLOAD_IDENTITIES, "cred", OWN, CREDENTIALS_BINDING),
                credentials_binding(WORKLOAD_IDENTITIES),
                elsewhere(credentialsBindingName="b"),
            ],
            "WorkloadIdentity garden-dev/cred",
        ),
        (
            [
                made(WORKLOAD_IDENTITIES, "cred", OWN, CREDENTIALS_BINDING),
                credentials_binding(),
                elsewhere(credentialsBindingName="b"),
            ],
            "",
        ),
        # Quotas
        (
            [QUOTA, secret_binding(secretRef=ELSEWHERE, **OF_QUOTA), elsewhere(secretBindingName="b")],
            "Quota garden-dev/q",
        ),
        ([QUOTA, credentials_binding(**OF_QUOTA), elsewhere(credentialsBindingName="b")], "Quota garden-dev/q"),
        ([QUOTA, credentials_binding(**OF_QUOTA), elsewhere(secretBindingName="b")], ""),
        ([made(QUOTAS, "p"), secret_binding(**OF_QUOTA), elsewhere(secretBindingName="b")], ""),
    ],
)
def test_a_project_is_used(objects: list[Object], expected: str) -> None:
    found = usage(objects).of(OWN)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)
