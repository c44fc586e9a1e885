"""Whom the API server reports it is passing a request on for."""

import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from localprocesses.pki import Authority
from webhooks.admission import User
from webhooks.front_proxy.server import headers_of
from webhooks.tls import CERTIFICATE, KEY, ServingCertificate
from webhooks.tokens.front_proxies import Published, parse, user_of

DATA = {
    "requestheader-client-ca-file": "PEM",
    "requestheader-allowed-names": '["front-proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
PUBLISHED = parse(DATA)


def test_what_is_published_is_read() -> None:
    assert PUBLISHED.authorities == b"PEM"
    assert PUBLISHED.user == ("X-Remote-User",)
    assert PUBLISHED.groups == ("X-Remote-Group",)
    assert PUBLISHED.extra == ("X-Remote-Extra-",)


@pytest.mark.parametrize(
    "data", [{}, {"requestheader-username-headers": "nonsense ["}, {"requestheader-allowed-names": "{}"}]
)
def test_what_is_not_published_names_no_one(data: dict[str, object]) -> None:
    assert parse(data).authorities == b""
    assert user_of([("X-Remote-User", "jane")], parse(data)) is None


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ([], None),
        ([("X-Remote-Group", "g")], None),
        ([("X-Remote-User", "")], None),
        ([("x-remote-user", "jane")], User("jane")),
        ([("X-Remote-User", "jane"), ("X-Remote-User", "root")], User("jane")),
        (
            [("X-Remote-User", "jane"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b"), ("X-Remote-Uid", "7")],
            User("jane", ("a", "b"), "7"),
        ),
        (
            [("X-Remote-User", "jane"), ("X-Remote-Extra-Scopes", "a"), ("X-Remote-Extra-Scopes", "b")],
            User("jane", extra={"scopes": ("a", "b")}),
        ),
        ([("X-Remote-User", "jane"), ("Impersonate-User", "root")], User("jane")),
    ],
)
def test_headers_name_a_user(headers: list[tuple[str, str]], user: User | None) -> None:
    assert user_of(headers, PUBLISHED) == user


def test_other_headers_are_used_if_the_api_server_reports_so() -> None:
    published = Published(user=("X-Who", "X-Remote-User"))
    assert user_of([("X-Remote-User", "b")], published) == User("b")
    assert user_of([("X-Remote-User", "b"), ("X-Who", "a")], published) == User("a")
    named = [("X-Remote-User", "b"), ("X-Remote-Uid", "1"), ("X-Uid", "2")]
    assert user_of(named, parse({**DATA, "requestheader-uid-headers": '["X-Uid"]'})) == User("b", uid="2")


def test_clients_of_the_front_proxy_may_send_none_of_these_headers() -> None:
    headers = headers_of(parse({**DATA, "requestheader-uid-headers": '["X-Uid"]'}))
    assert all(map(headers.are_untrusted, (b"X-Uid", b"x-remote-user", b"X-Remote-Extra-A")))
    assert not headers.are_untrusted(b"impersonate-user")


class Authorities:
    def __init__(self, current: Authority) -> None:
        self.current = current

    def authorities(self) -> bytes:
        return self.current.bundle


def connected(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both sides after the handshake, that of the client first; without them, the session ends. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    steps: list[Callable[[], None]] = [ours.do_handshake, theirs.do_handshake]
    while steps:
        step = steps.pop(0)
        try:
            step()
        except ssl.SSLWantReadError:
            steps.append(step)
    return ours, theirs


def test_a_session_with_a_certificate_of_a_former_authority_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS 1.2 keeps sessions for hours, and does not verify the certificate again."""
    servers, former = Authority.create("servers"), Authority.create("former")
    pair = servers.issue_server(["localhost"])
    (tmp_path / CERTIFICATE).write_bytes(pair.certificate)
    (tmp_path / KEY).write_bytes(pair.key)
    authorities = Authorities(former)
    serving = ServingCertificate(tmp_path, authorities)
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start - 60)
    assert serving.refresh()
    files = former.issue_client("alice").write(tmp_path, "alice")
    context = ssl.create_default_context(cadata=servers.bundle.decode())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    kept = connected(serving.context, context, None)
    session = kept[0].session
    again = connected(serving.context, context, session)
    assert again[0].session_reused
    monkeypatch.setattr(time, "time", lambda: start + 60)
    authorities.current = Authority.create("new")
    assert serving.refresh()
    with pytest.raises(ssl.SSLError):
        connected(serving.context, context, session)
