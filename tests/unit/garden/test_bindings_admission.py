"""SecretBindings, CredentialsBindings, Quotas and WorkloadIdentities: what they refer to, and who may."""

from typing import Any

import pytest

from gardener.api import garden as resources
from kit.objects import obj
from kit.webhooks.garden import Asked
from kube.objects import Object
from kube.resources import SECRETS
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.kinds.credentials_binding import CREDENTIALS_BINDING
from webhooks.garden.kinds.quota import QUOTA
from webhooks.garden.kinds.secret_binding import SECRET_BINDING
from webhooks.garden.kinds.workload_identity import WORKLOAD_IDENTITY

NS = "garden-dev"
LABEL = "provider.extensions.gardener.cloud/"
IDENTITY = "security.gardener.cloud/v1alpha1"


def quota(name: str, kind: str = "Secret", api_version: str = "v1") -> Object:
    return obj(
        resources.QUOTAS, f"{NS}/{name}", spec={"scope": {"apiVersion": api_version, "kind": kind}, "metrics": {}}
    )


PROJECT_QUOTA = quota("of-project", "Project", "core.gardener.cloud/v1beta1")
GARDEN = [
    obj(SECRETS, f"{NS}/cred"),
    obj(resources.WORKLOAD_IDENTITIES, f"{NS}/wi"),
    quota("q"),
    quota("r", "WorkloadIdentity", IDENTITY),
    PROJECT_QUOTA,
]


def secret_binding(types: str = "local", quotas: list[str] | None = None, secret: str = "cred") -> Object:
    named = {"quotas": [{"name": name} for name in quotas]} if quotas else {}
    return {"metadata": {"name": "sb"}, "provider": {"type": types}, "secretRef": {"name": secret}, **named}


def credentials_binding(
    kind: str = "Secret", name: str = "cred", types: str = "local", quotas: list[str] | None = None
) -> Object:
    reference = {"apiVersion": "v1" if kind == "Secret" else IDENTITY, "kind": kind, "name": name}
    named = {"quotas": [{"name": name} for name in quotas]} if quotas else {}
    return {"metadata": {"name": "sb"}, "provider": {"type": types}, "credentialsRef": reference, **named}


@pytest.mark.parametrize(
    ("kind", "obj", "field"),
    [(SECRET_BINDING, secret_binding, "secretRef"), (CREDENTIALS_BINDING, credentials_binding, "credentialsRef")],
)
def test_references_without_namespace_are_in_that_of_the_binding(kind: Kind, obj: Any, field: str) -> None:
    created = Asked(kind, garden=GARDEN).create(obj(quotas=["q"]))
    assert created.status is None
    assert created.object[field]["namespace"] == created.object["quotas"][0]["namespace"] == NS


@pytest.mark.parametrize(("types", "wanted"), [("local", {"local"}), ("local,other", {"local", "other"})])
def test_a_secret_binding_has_the_label_of_each_of_its_types(types: str, wanted: set[str]) -> None:
    binding = secret_binding(types)
    binding["metadata"]["labels"] = {f"{LABEL}old": "true", "mine": "x"}
    created = Asked(SECRET_BINDING, garden=GARDEN).create(binding)
    assert created.object["metadata"]["labels"] == {"mine": "x", **{LABEL + name: "true" for name in wanted}}


def test_a_credentials_binding_has_one_type() -> None:
    refused = Asked(CREDENTIALS_BINDING, garden=GARDEN).create(credentials_binding(types="a,b"))
    assert refused.fields == {"provider.type"}


@pytest.mark.parametrize(
    ("kind", "obj", "message"),
    [
        (SECRET_BINDING, secret_binding(secret="x"), 'secretRef: secrets "x" not found'),
        (SECRET_BINDING, secret_binding(quotas=["x"]), 'quotas[0]: quotas.core.gardener.cloud "x" not found'),
        (CREDENTIALS_BINDING, credentials_binding(name="x"), 'credentialsRef: secrets "x" not found'),
        (
            CREDENTIALS_BINDING,
            credentials_binding("WorkloadIdentity", "x"),
            'credentialsRef: workloadidentities.security.gardener.cloud "x" not found',
        ),
        (SECRET_BINDING, secret_binding(quotas=["q", "r"]), "only one quota per scope"),
    ],
)
def test_what_a_binding_names_has_to_be_there(kind: Kind, obj: Object, message: str) -> None:
    refused = Asked(kind, garden=GARDEN).create(obj)
    assert refused.code == 403
    assert message in refused.message


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (SECRET_BINDING, secret_binding(quotas=["q", "of-project"])),
        (CREDENTIALS_BINDING, credentials_binding(quotas=["q", "of-project"])),
        (CREDENTIALS_BINDING, credentials_binding("WorkloadIdentity", "wi")),
    ],
)
def test_what_is_there_can_be_named(kind: Kind, obj: Object) -> None:
    assert Asked(kind, garden=GARDEN).create(obj).status is None


@pytest.mark.parametrize(
    ("kind", "obj", "denied", "message"),
    [
        (SECRET_BINDING, secret_binding(), "get secrets", "SecretBinding cannot reference a Secret you are not"),
        (SECRET_BINDING, secret_binding(quotas=["q"]), "get quotas", "SecretBinding cannot reference a quota you are"),
        (CREDENTIALS_BINDING, credentials_binding(), "get secrets", "CredentialsBinding cannot reference a Secret you"),
        (
            CREDENTIALS_BINDING,
            credentials_binding("WorkloadIdentity", "wi"),
            "get workloadidentities",
            "CredentialsBinding cannot reference a WorkloadIdentity you are not allowed to read",
        ),
    ],
)
def test_users_bind_only_what_they_may_read(kind: Kind, obj: Object, denied: str, message: str) -> None:
    refused = Asked(kind, garden=GARDEN, denied=[denied]).create(obj)
    assert refused.code == 403
    assert message in refused.message


def test_rights_are_queried_again_only_for_what_changes() -> None:
    old = Asked(SECRET_BINDING, garden=GARDEN).create(secret_binding(quotas=["q"])).object
    requested = Asked(SECRET_BINDING)
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert requested.update(old, labelled).status is None
    assert requested.reviews.requested == []


def test_authors_of_secret_bindings_are_warned_of_what_comes_after() -> None:
    (warning,) = Asked(SECRET_BINDING, garden=GARDEN).create(secret_binding()).warnings
    assert "use CredentialsBinding" in warning


# --- quotas


@pytest.mark.parametrize(
    ("scope", "metrics", "fields"),
    [
        (("v1", "Secret"), {"cpu": "1", "gpu": 1, "memory": "1Gi", "storage.standard": "1", "loadbalancer": "0"}, set()),
        (("core.gardener.cloud/v1beta1", "Project"), {"storage.premium": "1Gi"}, set()),
        ((IDENTITY, "WorkloadIdentity"), {}, set()),
        (("v1", "ConfigMap"), {}, {"spec.scope"}),
        (("v2", "Secret"), {"pods": "5"}, {"spec.scope"}),
        (("v1", "Secret"), {"pods": "5"}, {"spec.metrics[pods]"}),
    ],
)  # fmt: skip
def test_scope_and_metrics_of_a_quota(scope: tuple[str, str], metrics: Object, fields: set[str]) -> None:
    spec = {"scope": {"apiVersion": scope[0], "kind": scope[1]}, "metrics": metrics}
    outcome = Asked(QUOTA).create({"metadata": {"name": "q"}, "spec": spec})
    assert outcome.fields == fields, outcome.message


# --- workload identities


def test_the_subject_of_a_workload_identity_fits_into_a_token() -> None:
    spec = {"audiences": ["a"], "targetSystem": {"type": "local"}}
    assert Asked(WORKLOAD_IDENTITY).create({"metadata": {"name": "wi"}, "spec": spec}).status is None
    long = {"metadata": {"name": "w" * 200}, "spec": spec}
    assert Asked(WORKLOAD_IDENTITY).create(long).fields == {"metadata.name"}
