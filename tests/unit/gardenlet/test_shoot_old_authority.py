"""Who is seen to trust the certificate authority of before a rotation alone."""

import base64
from collections.abc import Iterator, Mapping, Sequence

import pytest

from agent.gardenlet.shoot.care.rules.old_authority import (
    Authorities,
    authorities,
    is_user,
    unused,
    users_in_seed,
)
from components.secrets.stored import Stored
from kube.kubeconfigs import kubeconfig
from kube.objects import Object
from localprocesses.pki import Authority

OLD, NEW, OTHER = (Authority.create(name).bundle for name in ("old", "new", "other"))
BOTH = NEW + OLD


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def secret_of(name: str, issued: int, certificate: bytes) -> Stored:
    labels = {"name": name, "issued-at-time": str(issued)}
    return Stored(name=f"{name}-{issued}", labels=labels, data={"ca.crt": certificate})


def found() -> Authorities:
    made = authorities([secret_of("ca", 1, OLD), secret_of("ca", 2, NEW), secret_of("ca-client", 3, OTHER)])
    assert made is not None
    return made


def test_there_is_nothing_to_exchange_without_an_old_one() -> None:
    assert authorities([secret_of("ca", 2, NEW), secret_of("ca-client", 1, OTHER)]) is None
    assert authorities([]) is None


def with_bundle(bundle: bytes) -> Iterator[Object]:
    """All in which clients keep one."""
    config = {"caBundle": encoded(bundle)}
    yield {"data": {"ca.crt": bundle.decode()}}
    yield {"webhooks": [{"clientConfig": {"caBundle": encoded(OTHER)}}, {"clientConfig": config}]}
    yield {"spec": config}
    yield {"spec": {"conversion": {"webhook": {"clientConfig": config}}}}
    yield {"data": {"a": kubeconfig("a", server="s", ca_bundle=bundle, user={}).decode()}}


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [(OLD, True), (OLD + OTHER, True), (BOTH, False), (NEW, False), (OTHER, False), (b"", False)],
)
def test_only_who_lacks_the_new_one_is_named(bundle: bytes, *, expected: bool) -> None:
    assert [is_user(found(), each) for each in with_bundle(bundle)] == [expected] * 5


def test_what_is_no_bundle_is_none() -> None:
    assert not is_user(found(), {"spec": {"caBundle": "%"}, "data": {"ca.crt": "x"}})


def secret(name: str, data: Mapping[str, bytes], *, by_manager: bool = False) -> Object:
    labels = {"managed-by": "secrets-manager"} if by_manager else {}
    values = {field: encoded(value) for field, value in data.items()}
    return {"metadata": {"name": name, "labels": labels}, "data": values}


def workload(name: str, *secrets: str) -> Object:
    projected = {"projected": {"sources": [{"secret": {"name": each}} for each in secrets[1:]]}}
    volumes = [*({"secret": {"secretName": each}} for each in secrets[:1]), projected]
    return {"kind": "Deployment", "metadata": {"name": name}, "spec": {"template": {"spec": {"volumes": volumes}}}}


def test_what_runs_in_the_seed_is_named_by_what_it_mounts() -> None:
    configs = {name: kubeconfig("a", server="s", ca_bundle=ca, user={}) for name, ca in (("k-1", OLD), ("k-2", BOTH))}
    secrets = [
        *(secret(name, {"kubeconfig": config}, by_manager=True) for name, config in configs.items()),
        secret("ca", {"ca.crt": OLD}, by_manager=True),
        secret("copy", {"ca.crt": OLD}),
        secret("fresh", {"ca.crt": BOTH}),
    ]
    workloads = [workload("a", "x", "k-2"), workload("b", "x", "k-1"), workload("c", "copy")]
    assert [*users_in_seed(found(), secrets, workloads)] == [
        "Secret copy in the seed",
        "Deployment b in the seed, by Secret k-1",
        "Deployment c in the seed, by Secret copy",
    ]


@pytest.mark.parametrize(
    ("users", "status", "reported"),
    [
        ([], "True", "No object in the seed or in the Shoot trusts only the old certificate authority."),
        (["a", "b"], "False", "completed; update them: a, b. Kubeconfigs and bundles downloaded before 2026"),
        ([str(number) for number in range(12)], "False", "update them: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more."),
    ],
)
def test_a_constraint_names_them(users: Sequence[str], status: str, reported: str) -> None:
    rotation = {"certificateAuthorities": {"lastInitiationFinishedTime": "2026-01-01T00:00:00Z"}}
    condition = unused(users, shoot={"status": {"credentials": {"rotation": rotation}}})
    assert (condition.type, condition.status) == ("OldCACertificateUnused", status)
    assert reported in condition.message
