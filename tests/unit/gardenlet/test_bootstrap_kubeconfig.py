"""Which kubeconfig leads to the garden, and what is kept of the one that a gardenlet gets."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from agent.gardenlet.bootstrap.rules.certificate import Life
from agent.gardenlet.bootstrap.rules.kubeconfig import (
    Found,
    NoKubeconfig,
    Source,
    choice,
    configured_authority,
    document,
    expired_text,
    same_authority,
    secret_patch,
    with_authority,
)
from agent.gardenlet.bootstrap.rules.unfinished import ANNOTATION, Unfinished, credentials_of, unfinished
from kube.objects import Object
from kube.resources import CLUSTER_ROLE_BINDINGS, SECRETS, SERVICE_ACCOUNTS
from kube.x509 import make_ca, pem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
VALID = Life(NOW - timedelta(days=1), NOW + timedelta(days=1), b"")
EXPIRED = Life(NOW - timedelta(days=2), NOW, b"")


def found(
    *, file: str = "", has_secret: bool = True, stored: bytes = b"", life: Life | None = None, bootstrap: bytes | None
) -> Found:
    """Args: bootstrap: None: no Secret is configured."""
    return Found(
        file=file,
        has_secret=has_secret,
        stored=stored,
        life=life,
        may_bootstrap=bootstrap is not None,
        bootstrap=bootstrap or b"",
    )


@pytest.mark.parametrize(
    ("there", "source"),
    [
        (found(has_secret=False, file="f", bootstrap=None), Source.FILE),
        (found(has_secret=False, file="f", bootstrap=b"b"), Source.FILE),
        (found(stored=b"k", life=VALID, bootstrap=b"b"), Source.STORED),
        (found(stored=b"k", life=VALID, bootstrap=None), Source.STORED),
        (found(stored=b"k", life=None, bootstrap=None), Source.STORED),
        (found(file="f", bootstrap=None), Source.FILE),
        (found(bootstrap=b"b"), Source.BOOTSTRAP),
        (found(file="f", bootstrap=b"b"), Source.BOOTSTRAP),
        (found(stored=b"k", life=EXPIRED, bootstrap=b"b"), Source.BOOTSTRAP),
        (found(stored=b"k", life=EXPIRED, bootstrap=b""), Source.NONE_VALID),
        (found(stored=b"k", life=EXPIRED, bootstrap=None, file="f"), Source.NONE_VALID),
    ],
)
def test_which_kubeconfig_is_used(there: Found, source: Source) -> None:
    assert choice(there, now=NOW) is source


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (found(has_secret=False, bootstrap=None), "no kubeconfig for the garden"),
        (found(bootstrap=None), "no kubeconfig for the garden"),
        (found(bootstrap=b"", file="f"), "bootstrap secret does not contain a kubeconfig, cannot bootstrap"),
    ],
)
def test_without_any_the_text_reports_what_is_missing(there: Found, text: str) -> None:
    with pytest.raises(NoKubeconfig, match=text):
        choice(there, now=NOW)


def test_an_expired_certificate_is_reported_with_the_ways_out() -> None:
    text = expired_text(secret="garden/k", bootstrap="garden/b", seed="local", life=EXPIRED)
    for part in ("Secret garden/k", "seed local", "2024-01-01T00:00:00Z", "Secret garden/b", "new kubeconfig"):
        assert part in text
    assert "bootstrapKubeconfig" in expired_text(secret="garden/k", bootstrap="", seed="local", life=EXPIRED)


def test_the_stored_kubeconfig_has_one_cluster_user_and_context() -> None:
    cluster = {"server": "https://garden", "certificate-authority-data": "Q0E=", "extensions": ["x"]}
    stored = yaml.safe_load(document(cluster, certificate=b"certificate", key=b"key"))
    assert stored == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "gardenlet", "cluster": {"server": "https://garden", "certificate-authority-data": "Q0E="}}
        ],
        "contexts": [{"name": "gardenlet", "context": {"cluster": "gardenlet", "user": "gardenlet"}}],
        "current-context": "gardenlet",
        "users": [
            {
                "name": "gardenlet",
                "user": {"client-certificate-data": "Y2VydGlmaWNhdGU=", "client-key-data": "a2V5"},
            }
        ],
    }


def test_of_the_secret_only_the_kubeconfig_is_replaced_and_what_was_requested_is_done() -> None:
    present: Object = {
        "metadata": {"resourceVersion": "7", "labels": {"l": "x"}},
        "data": {"kubeconfig": "", "more": "eA=="},
    }
    assert secret_patch(present, b"k", annotations={"a": "b"}) == {
        "metadata": {"resourceVersion": "7", "annotations": {"gardener.cloud/operation": None, "a": "b"}},
        "data": {"kubeconfig": "aw==", "more": None},
    }
    assert secret_patch({"metadata": {"resourceVersion": "7"}}, b"k", annotations={})["data"] == {"kubeconfig": "aw=="}


@pytest.mark.parametrize(
    ("setting", "authority"),
    [("", None), ("none", b""), ("null", b""), (" none\n", b""), ("pem", b"pem")],
)
def test_which_authority_is_configured(setting: str, authority: bytes | None) -> None:
    assert configured_authority(base64.b64encode(setting.encode()).decode()) == authority


def test_bundles_are_the_same_in_any_order() -> None:
    one, two = (make_ca(name, now=NOW, lifetime=timedelta(days=1)).certificate for name in ("one", "two"))
    assert same_authority(pem(one, two), b"# a comment\n" + pem(two, one))
    assert not same_authority(pem(one), pem(one, two))
    assert not same_authority(b"", pem(one))
    assert same_authority(b"", b"")


def test_without_an_authority_those_of_the_system_count() -> None:
    cluster = {"server": "s", "certificate-authority-data": "Q0E="}
    assert with_authority(cluster, b"") == {"server": "s"}
    assert with_authority(cluster, b"pem") == {"server": "s", "certificate-authority-data": "cGVt"}


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ("system:bootstrap:abcdef", [(SECRETS, "kube-system", "bootstrap-token-abcdef")]),
        (
            "system:serviceaccount:garden:gardenlet-bootstrap-a",
            [
                (SERVICE_ACCOUNTS, "garden", "gardenlet-bootstrap-a"),
                (
                    CLUSTER_ROLE_BINDINGS,
                    "",
                    "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a",
                ),
            ],
        ),
        ("jane", []),
        ("system:bootstrap:", []),
        ("system:serviceaccount:garden", []),
    ],
)
def test_what_a_bootstrap_was_made_with(user: str, credentials: list[object]) -> None:
    assert credentials_of(user) == credentials


def test_a_bootstrap_that_is_not_finished_is_remembered() -> None:
    left = Unfinished(request="seed-csr-a", user="system:bootstrap:abcdef", bootstrap_uid="u")
    assert unfinished({"metadata": {"annotations": left.as_annotations()}}) == left


@pytest.mark.parametrize("noted", [None, "nonsense", "[]", "{}", '{"request": "a"}'])
def test_what_can_not_be_read_is_no_bootstrap(noted: str | None) -> None:
    assert unfinished(None) is None
    assert unfinished({"metadata": {"annotations": {ANNOTATION: noted} if noted else {}}}) is None
