"""Changes that the front proxy makes to requests: paths, and headers that name users."""

from datetime import UTC, datetime

import pytest

from webhooks.front_proxy.rules.requests import (
    Change,
    Fields,
    Headers,
    Identity,
    NoIdentity,
    changed_target,
    identity_of,
)
from webhooks.tokens.paths import issued_at

CORE, SECURITY = "/apis/core.gardener.cloud/v1beta1", "/apis/security.gardener.cloud/v1alpha1"
OURS = "/apis/authentication.gardener.cloud/v1alpha1"
SHOOT, IDENTITY = "/namespaces/n/shoots/s", "/namespaces/n/workloadidentities/w"
HEADERS = Headers(
    user="X-Remote-User", groups="X-Remote-Group", untrusted=frozenset({b"x-user"}), prefixes=(b"x-extra-",)
)
ALICE = Identity(user="alice", groups=("a", "b"), until=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("method", "target", "changed"),
    [
        ("POST", f"{CORE}{SHOOT}/adminkubeconfig", f"{OURS}{SHOOT}/adminkubeconfig"),
        ("POST", f"{CORE}{SHOOT}/viewerkubeconfig?a=b", f"{OURS}{SHOOT}/viewerkubeconfig?a=b"),
        ("POST", f"{SECURITY}{IDENTITY}/token", f"{OURS}{IDENTITY}/token"),
        ("PUT", f"{CORE}{SHOOT}/binding", f"{CORE}{SHOOT}"),
        ("PATCH", f"{CORE}{SHOOT}/binding?dryRun=All", f"{CORE}{SHOOT}?dryRun=All"),
        *(
            (method, target, target)
            for method, target in [
                ("GET", f"{CORE}{SHOOT}/adminkubeconfig"),
                ("DELETE", f"{CORE}{SHOOT}/binding"),
                ("POST", f"{CORE}{SHOOT}/binding"),
                ("POST", f"{CORE}{IDENTITY}/token"),
                ("POST", f"{SECURITY}{SHOOT}/adminkubeconfig"),
                ("POST", f"{CORE}{SHOOT}/adminkubeconfig/x"),
                ("POST", f"{CORE}/namespaces/n/m/shoots/s/adminkubeconfig"),
                ("POST", f"/x{CORE}{SHOOT}/adminkubeconfig"),
                ("POST", f"{CORE}{SHOOT}?{SHOOT}/adminkubeconfig"),
                ("GET", CORE),
                ("GET", "/"),
            ]
        ),
    ],
)
def test_the_path_changes_only_for_subresources_that_definitions_lack(method: str, target: str, changed: str) -> None:
    assert changed_target(method, target) == changed


def test_credentials_are_issued_for_the_paths_of_the_original() -> None:
    assert issued_at(f"{CORE}{SHOOT}/adminkubeconfig") == f"{OURS}{SHOOT}/adminkubeconfig"
    assert issued_at(f"{CORE}{SHOOT}/adminkubeconfig\n") == issued_at(f"{CORE}{SHOOT}") == ""


@pytest.mark.parametrize("identity", [None, ALICE], ids=["token", "certificate"])
def test_only_the_proxy_names_a_user(identity: Identity | None) -> None:
    sent: Fields = [
        (b"Authorization", b"Bearer t"),
        (b"X-Remote-User", b"root"),
        (b"x-REMOTE-group", b"system:masters"),
        (b"X-Remote-Extra-Scopes", b"all"),
        (b"X-Remote-Uid", b"1"),
        (b"X-User", b"root"),
        (b"X-Extra-A", b"b"),
        (b"Impersonate-User", b"bob"),
        (b"X-Forwarded-For", b"10.0.0.1"),
    ]
    named = [(b"x-remote-user", b"alice"), (b"x-remote-group", b"a"), (b"x-remote-group", b"b")] if identity else []
    change = Change(headers=HEADERS, identity=identity, address="10.0.0.2")
    passed = [(b"Authorization", b"Bearer t"), (b"Impersonate-User", b"bob")]
    assert change.head("GET", "/api", sent) == ("/api", [*passed, (b"x-forwarded-for", b"10.0.0.1, 10.0.0.2"), *named])
    trailers: Fields = [(b"grpc-status", b"0"), (b"x-remote-user", b"root")]
    assert change.block(trailers) == [(b"grpc-status", b"0")]


def test_the_path_of_a_header_block_changes_in_place() -> None:
    change = Change(headers=HEADERS, identity=None, address="a")
    pseudo = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", f"{CORE}{SHOOT}/adminkubeconfig".encode())]
    changed = change.block([*pseudo, (b"accept", b"*/*")])
    assert changed[:3] == [*pseudo[:2], (b":path", f"{OURS}{SHOOT}/adminkubeconfig".encode())]


@pytest.mark.parametrize(
    ("target", "sent", "passed"),
    [
        (f"{CORE}/projects", b"application/vnd.kubernetes.protobuf;x=y", False),
        (f"{CORE}/projects", b"application/json", True),
        ("/api/v1/namespaces", b"application/vnd.kubernetes.protobuf", True),
    ],
)
def test_protobuf_of_custom_resources_is_declared_unknown(target: str, sent: bytes, passed: bool) -> None:
    change = Change(headers=HEADERS, identity=None, address="a")
    _, fields = change.head("POST", target, [(b"Content-Type", sent)])
    assert (dict(fields)[b"Content-Type"] == sent) is passed
    assert not dict(fields)[b"Content-Type"].startswith(b"application/vnd.kubernetes.protobuf;")


def certificate(*subject: tuple[str, str]) -> dict[str, object]:
    return {"subject": tuple((pair,) for pair in subject), "notAfter": "Jan  5 09:34:43 2030 GMT"}


def test_a_certificate_names_user_groups_and_its_end() -> None:
    found = identity_of(certificate(("organizationName", "a"), ("organizationName", "b"), ("commonName", "alice")))
    assert found == Identity(user="alice", groups=("a", "b"), until=datetime(2030, 1, 5, 9, 34, 43, tzinfo=UTC))


@pytest.mark.parametrize(
    "subject",
    [
        (),
        (("organizationName", "a"),),
        (("commonName", ""),),
        (("commonName", " admin"),),
        (("commonName", "alice\r\nX-Remote-Group: system:masters"),),
        (("commonName", "alice"), ("organizationName", "a\n")),
    ],
)
def test_a_name_that_a_header_would_change_is_rejected(subject: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(NoIdentity):
        identity_of(certificate(*subject))
