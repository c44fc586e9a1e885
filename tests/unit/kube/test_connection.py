"""Where connections come from: kubeconfigs that are trusted or not, service accounts, tokens that others renew."""

import base64
import math
import os
import re
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.clock import FakeClock
from kit.kubeconfigs import kubeconfig as document
from kit.kubeconfigs import written
from kube.objects import Object
from kube.runtime.connection import (
    Connection,
    Fixed,
    Plugin,
    Rotation,
    TokenFile,
    connection_of_kubeconfig,
    in_cluster,
    load_kubeconfig,
)
from kube.runtime.kubeconfig import ConfigurationError, read_kubeconfig
from localprocesses.pki import Authority

VALID_FIELDS = "these are the valid fields: [client-certificate-data client-key-data token username password tokenFile]"
EXEC = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin"}}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test")


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def certified(authority: Authority, name: str) -> dict[str, str]:
    """A user with a client certificate as data."""
    pair = authority.issue_client(name)
    return {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}


def write(directory: Path, content: Any) -> Path:
    return written(directory / "kubeconfig", content)


def load(directory: Path, content: Any, **options: Any) -> Connection:
    return load_kubeconfig(write(directory, content), **options)


# --- kubeconfigs


@pytest.mark.parametrize(
    ("user", "header"),
    [
        *(({"token": token}, "Bearer abc") for token in ("abc", "abc\n")),
        ({"token": "abc", "username": "me", "password": "pw"}, "Bearer abc"),
        ({"username": "me", "password": "pw:ü"}, f"Basic {encoded('me:pw:ü'.encode())}"),
        *(({"username": "me", **password}, f"Basic {encoded(b'me:')}") for password in ({}, {"password": None})),
        ({}, None),
        (None, None),
    ],
)
async def test_credentials_become_the_header(user: Any, header: str | None, tmp_path: Path) -> None:
    connection = load(tmp_path, document(user))
    assert await connection.credentials.authorization() == header
    assert connection.server == "https://host:6443"
    assert connection.tls is not None
    assert not connection.credentials.invalidate()


def test_a_context_may_have_no_user(tmp_path: Path) -> None:
    content = document()
    del content["contexts"][0]["context"]["user"]
    assert load(tmp_path, content).credentials == Fixed()


def test_the_context_can_be_named(tmp_path: Path) -> None:
    content = document({"token": "a"})
    content["clusters"].append({"name": "d", "cluster": {"server": "https://second/path/"}})
    content["contexts"].append({"name": "y", "context": {"cluster": "d", "user": "u"}})
    assert load(tmp_path, content, context="y").server == "https://second/path"
    assert load(tmp_path, content).server == "https://host:6443"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"client-certificate": "/file"}, "client certificate files"),
        ({"client-key": "/file"}, "client key files"),
        ({"as": "admin"}, "impersonations"),
        ({"as-uid": "1"}, "impersonations"),
        ({"as-groups": ["system:masters"]}, "impersonations"),
        ({"as-user-extra": {"a": ["b"]}}, "impersonations"),
        ({"auth-provider": {"name": "oidc"}}, "auth provider configurations"),
        (EXEC, "exec configurations"),
    ],
)
def test_an_untrusted_kubeconfig_reads_no_files_and_runs_nothing(fields: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, document({"token": "t"} | fields))
    assert str(refused.value) == f'{what} are not supported (user "u"), {VALID_FIELDS}'


def test_all_users_of_the_file_are_checked(tmp_path: Path) -> None:
    content = document({"token": "t"})
    content["users"] += [{"name": "other", "user": user} for user in ({"token": "s"}, EXEC)]
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, content)
    assert str(refused.value) == f'exec configurations are not supported (user "other"), {VALID_FIELDS}'


def test_a_trusted_kubeconfig_may_run_plugins(tmp_path: Path) -> None:
    for user in (EXEC, {"auth-provider": {"name": "oidc", "config": {"id-token": "x"}}}):
        assert isinstance(load(tmp_path, document(user), trusted=True).credentials, Plugin)


def test_a_trusted_kubeconfig_may_name_certificate_files_beside_it(tmp_path: Path, authority: Authority) -> None:
    files = authority.issue_client("me").write(tmp_path, "me")
    user = {"client-certificate": Path(files.certificate).name, "client-key": Path(files.key).name}
    connection = load(tmp_path, document(user), trusted=True)
    assert connection.credentials == Fixed()
    Path(files.certificate).unlink()
    with pytest.raises(ConfigurationError, match="certificates that can't be used"):
        load(tmp_path, document(user), trusted=True)


def test_client_certificates_as_data_are_used_and_leave_no_file(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing may be written here"))
    assert load(tmp_path, document(certified(authority, "me"))).credentials == Fixed()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    # Without files in memory the key is on the disk, no longer than needed.
    monkeypatch.delattr("os.memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert load(tmp_path, document(certified(authority, "me"))).credentials == Fixed()
    assert [file.name for file in tmp_path.iterdir()] == ["kubeconfig"]


def test_a_key_that_does_not_fit_its_certificate_is_refused(tmp_path: Path, authority: Authority) -> None:
    user: Any = certified(authority, "one") | {"client-key-data": encoded(authority.issue_client("two").key)}
    with pytest.raises(ConfigurationError, match="kubeconfig holds certificates that can't be used"):
        load(tmp_path, document(user))


def tls_of(connection: Connection) -> ssl.SSLContext:
    assert connection.tls is not None
    return connection.tls


def test_the_authority_of_the_cluster_alone_is_trusted(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca.pem").write_bytes(authority.bundle)
    data = {"certificate-authority-data": encoded(authority.bundle)}
    for cluster in (data, {"certificate-authority": "ca.pem"}, {"certificate-authority": "missing.pem", **data}):
        tls = tls_of(load(tmp_path, document(cluster=cluster)))
        assert len(tls.get_ca_certs()) == 1
        assert tls.verify_mode == ssl.CERT_REQUIRED
        assert tls.check_hostname


def test_the_bundle_of_the_authority_is_known_wherever_it_is(
    tmp_path: Path, authority: Authority, service_account: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(b"# Zertifikat f\xc3\xbcr alle\n" + authority.bundle)
    inline = load(tmp_path, document(cluster={"certificate-authority-data": encoded(authority.bundle)}))
    named = load(tmp_path, document(cluster={"certificate-authority": "ca.crt"}))
    in_pod = in_cluster(
        environment={"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, directory=service_account
    )
    assert inline.authority == authority.bundle
    assert named.authority == (tmp_path / "ca.crt").read_bytes()
    assert in_pod.authority == (service_account / "ca.crt").read_bytes()
    assert load(tmp_path, document()).authority == b""
    for connection in (inline, named):
        assert len(tls_of(connection).get_ca_certs()) == 1


def test_verification_is_left_out_only_if_the_file_states_so(tmp_path: Path) -> None:
    connection = load(tmp_path, document(cluster={"insecure-skip-tls-verify": True}))
    assert tls_of(connection).verify_mode == ssl.CERT_NONE


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    assert load(tmp_path, document(cluster={"server": "http://127.0.0.1:8001"})).tls is None


def test_the_name_for_tls_can_differ_from_the_host(tmp_path: Path) -> None:
    assert load(tmp_path, document(cluster={"tls-server-name": "kubernetes"})).tls_server_name == "kubernetes"
    assert load(tmp_path, document()).tls_server_name is None


async def test_a_token_file_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/token").write_text("abc\n")
    connection = load(tmp_path, document({"tokenFile": "sub/token"}))
    assert await connection.credentials.authorization() == "Bearer abc"
    absolute = load(tmp_path, document({"tokenFile": str(tmp_path / "sub/token"), "token": "older"}))
    assert await absolute.credentials.authorization() == "Bearer abc"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((text, "is not a mapping") for text in ("", "[]")),
        *((text, "cannot read the kubeconfig") for text in ("a: [", "a: 2001-99-01")),
        ("{}", "has no current context; set current-context in it"),
        *((f"contexts: {each}\ncurrent-context: x", "has no entry 'x' in contexts") for each in ("5", "[5, null]")),
        (document() | {"current-context": "y"}, "has no entry 'y' in contexts"),
        (document() | {"clusters": None}, "has no entry 'c' in clusters"),
        (document() | {"users": {"u": {}}}, "has no entry 'u' in users"),
        (document() | {"users": [{"name": "u", "user": "text"}]}, "has no entry 'u' in users"),
        *(
            (document(cluster={"server": url}), "has no server for cluster 'c'; set its field server to https://")
            for url in ("", "host:6443", "https://", "https://[::1", "https://h:99999", "https://h:x")
        ),
        *(
            (document(cluster={field: value}), f"needs a string for {field} in clusters; put it into quotes")
            for field in ("server", "certificate-authority-data", "certificate-authority", "tls-server-name")
            for value in (["a"], {"a": 1}, True)
        ),
        (document({"token": {"a": 1}}), "needs a string for token in users; put it into quotes"),
        (document(cluster={"certificate-authority-data": "eA==!"}), "certificate-authority-data is not valid base64"),
        (document(cluster={"proxy-url": "http://proxy"}), "has a proxy-url, which is not supported; remove it"),
        *(
            (document(cluster={"certificate-authority-data": data}), "certificates that can't be used")
            for data in ("%%%", encoded(b"no PEM"), encoded(b"\xff"), "  ")
        ),
        (document(cluster={"certificate-authority": "missing.pem"}), "certificates that can't be used"),
        (document({"client-certificate-data": "eA==", "client-key-data": "eA=="}), "certificates that can't be used"),
        *((document({"token": text}), "the token has invalid characters") for text in ("a\nb", "ü")),
        (document({"token": "  "}), "the token is empty"),
    ],
)
def test_a_broken_kubeconfig_is_refused_with_its_name(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, content)
    assert message in str(refused.value)
    assert str(tmp_path / "kubeconfig") in str(refused.value)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read the kubeconfig .*/missing"):
        load_kubeconfig(tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="cannot read the kubeconfig"):
        load_kubeconfig(tmp_path)


def test_no_secret_is_in_a_message(tmp_path: Path) -> None:
    for user in ({"token": "s3cret\nvalue"}, {"password": "s3cret", "username": "u"} | EXEC):
        with pytest.raises(ConfigurationError) as refused:
            load(tmp_path, document(user))
        assert "s3cret" not in str(refused.value)


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="install the extra auth-plugins"):
        load(tmp_path, document(EXEC), trusted=True)


# --- identity


def test_equal_credentials_for_one_server_are_one_identity(tmp_path: Path, authority: Authority) -> None:
    users: list[Any] = [{}, *(certified(authority, name) for name in ("one", "two"))]
    for value in "ab":
        users += [{"token": value}, {"username": "me", "password": value}, {"tokenFile": value}]
    contents = [document(user) for user in users]
    contents.append(document({"token": "a"}, cluster={"server": "https://elsewhere"}))
    identities = [load(tmp_path, content).identity for content in contents]
    assert len(set(identities)) == len(contents)
    assert [load(tmp_path, content).identity for content in contents] == identities


def test_certificate_files_are_different_identities(tmp_path: Path, authority: Authority) -> None:
    identities = set()
    for name in ("one", "two"):
        files = authority.issue_client(name).write(tmp_path, name)
        user = {"client-certificate": str(files.certificate), "client-key": str(files.key)}
        identities.add(load(tmp_path, document(user), trusted=True).identity)
    assert len(identities) == 2


# --- token files


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def token_of(directory: Path, clock: FakeClock) -> tuple[Path, TokenFile]:
    """A file with a token that was read."""
    file = directory / "token"
    file.write_text("one\n")
    token = TokenFile(file, clock=clock)
    assert await token.authorization() == "Bearer one"
    return file, token


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, clock: FakeClock) -> None:
    file, token = await token_of(tmp_path, clock)
    file.write_text("two")
    clock.now += 59
    assert await token.authorization() == "Bearer one"
    clock.now += 1
    assert await token.authorization() == "Bearer two"


async def test_a_token_file_is_read_again_when_its_token_was_not_taken(tmp_path: Path, clock: FakeClock) -> None:
    file, token = await token_of(tmp_path, clock)
    file.write_text("two")
    assert token.invalidate()
    assert await token.authorization() == "Bearer two"


@pytest.mark.parametrize("content", [None, "", "\n", "a\nb", "ü"])
async def test_while_a_token_is_replaced_the_old_one_is_used(content: Any, tmp_path: Path, clock: FakeClock) -> None:
    file, token = await token_of(tmp_path, clock)
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    clock.now += 61
    assert await token.authorization() == "Bearer one"
    token.invalidate()
    assert await token.authorization() == "Bearer one"
    file.write_text("two")
    token.invalidate()
    assert await token.authorization() == "Bearer two"


@pytest.mark.parametrize("content", [None, b"", b"a\nb", b"\xff"])
async def test_a_file_without_a_token_is_an_error_until_one_comes(content: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    token = TokenFile(file)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=f"cannot read the token file {file}: "):
            await token.authorization()
    file.write_text("one")
    assert await token.authorization() == "Bearer one"


async def test_the_first_token_is_read_whatever_the_clock_reports(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    assert await TokenFile(tmp_path / "token", clock=lambda: 0.5).authorization() == "Bearer one"
    assert await TokenFile(tmp_path / "token", clock=lambda: -math.pi).authorization() == "Bearer one"


# --- in a Pod

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path, authority: Authority) -> Path:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_bytes(authority.bundle)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00:10:96::1", "https://[fd00:10:96::1]:443")]
)
async def test_a_pod_uses_its_service_account(host: str, server: str, service_account: Path) -> None:
    connection = in_cluster(environment=IN_POD | {"KUBERNETES_SERVICE_HOST": host}, directory=service_account)
    assert connection.server == server
    assert await connection.credentials.authorization() == "Bearer pod-token"
    assert len(tls_of(connection).get_ca_certs()) == 1
    (service_account / "token").write_text("renewed")
    assert connection.credentials.invalidate()
    assert await connection.credentials.authorization() == "Bearer renewed"


@pytest.mark.parametrize("missing", list(IN_POD))
def test_outside_of_a_pod_there_is_no_configuration(missing: str, service_account: Path) -> None:
    environment = {name: value for name, value in IN_POD.items() if name != missing}
    with pytest.raises(ConfigurationError, match=r"^invalid configuration: no configuration has been provided, "):
        in_cluster(environment=environment, directory=service_account)


@pytest.mark.parametrize("file", ["token", "ca.crt"])
def test_a_missing_file_of_the_service_account_is_named(file: str, service_account: Path) -> None:
    (service_account / file).unlink()
    with pytest.raises(ConfigurationError, match=f"{service_account}/{file}"):
        in_cluster(environment=IN_POD, directory=service_account)


def test_a_broken_authority_of_the_service_account_is_named(service_account: Path) -> None:
    (service_account / "ca.crt").write_text("no PEM")
    with pytest.raises(ConfigurationError, match=f"cannot load the cluster's CA bundle {service_account}/ca.crt"):
        in_cluster(environment=IN_POD, directory=service_account)


# --- kubeconfigs in memory


def in_memory(user: Any, **cluster: Any) -> Connection:
    content = yaml.safe_dump(document(user, cluster=cluster))
    return connection_of_kubeconfig(content.encode(), origin="of the Secret ns/gardener")


async def test_a_kubeconfig_in_memory_is_as_good_as_a_file(tmp_path: Path, authority: Authority) -> None:
    for user in ({"token": "abc"}, certified(authority, "user")):
        found, of_file = in_memory(user), load(tmp_path, document(user))
        assert found.identity == of_file.identity
        assert await found.credentials.authorization() == await of_file.credentials.authorization()
        assert (found.files, found.reload) == ((), None)


@pytest.mark.parametrize(
    ("user", "cluster", "reason"),
    [
        ({"tokenFile": "/var/run/token"}, {}, "has a file in tokenFile; put its content into token"),
        (
            {"token": "abc"},
            {"certificate-authority": "ca.crt"},
            "has a file in certificate-authority; put its content into certificate-authority-data",
        ),
        ({"exec": {"command": "touch"}}, {}, 'exec configurations are not supported (user "u")'),
        ({"token": ["abc"]}, {}, "needs a string for token in users; put it into quotes"),
    ],
)
def test_a_kubeconfig_in_memory_names_no_files(user: Object, cluster: Object, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        in_memory(user, **cluster)


@pytest.mark.parametrize("content", [b"{", b"[]", b"a: &a b\nc: *a", b"\xff", b"#" * (5 << 20)])
def test_what_is_no_kubeconfig_is_named_by_its_origin(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match="kubeconfig of the Secret a/b"):
        connection_of_kubeconfig(content, origin="of the Secret a/b")


# --- files that are replaced while the process runs

Clock = Callable[[], float]


@pytest.fixture
def looks(clock: FakeClock) -> Clock:
    """A clock that goes on by more than the interval of looks each time it is read."""

    def read() -> float:
        clock.now += 10
        return clock.now

    return read


async def header_of(rotation: Rotation) -> str | None:
    return await rotation.current().credentials.authorization()


async def test_a_kubeconfig_that_is_replaced_is_used_from_then_on(tmp_path: Path, looks: Clock) -> None:
    rotation = Rotation(load(tmp_path, document({"token": "first"})), clock=looks)
    unchanged = rotation.current()
    assert rotation.current() is unchanged
    second, third = (document({"token": token}) for token in ("second", "third"))
    for content, header in ((second, "Bearer second"), ("{", "Bearer second"), (third, "Bearer third")):
        write(tmp_path, content)
        assert await header_of(rotation) == header


async def test_another_server_needs_a_restart(tmp_path: Path, looks: Clock) -> None:
    rotation = Rotation(load(tmp_path, document({"token": "first"})), clock=looks)
    write(tmp_path, document({"token": "second"}, cluster={"server": "https://other"}))
    assert await header_of(rotation) == "Bearer first"
    assert rotation.current().server == "https://host:6443"


async def test_a_connection_that_is_replaced_is_used_and_its_files_are_looked_at(tmp_path: Path, looks: Clock) -> None:
    changes: list[None] = []
    rotation = Rotation(in_memory({"token": "first"}), clock=looks, on_change=lambda: changes.append(None))
    assert await header_of(rotation) == "Bearer first"
    rotation.replace(load(tmp_path, document({"token": "second"})))
    assert await header_of(rotation) == "Bearer second"
    write(tmp_path, document({"token": "third"}))
    assert await header_of(rotation) == "Bearer third"
    assert len(changes) == 2


def trusted_by(rotation: Rotation) -> list[Any]:
    return tls_of(rotation.current()).get_ca_certs(binary_form=True)


def test_a_ca_file_that_is_replaced_is_trusted_from_then_on(tmp_path: Path, looks: Clock, authority: Authority) -> None:
    file, other = tmp_path / "ca.crt", Authority.create("other")
    file.write_bytes(authority.bundle)
    pod = tmp_path / "pod"
    pod.mkdir()
    (pod / "token").write_text("token")
    (pod / "ca.crt").symlink_to(file)
    by_kubeconfig = Rotation(load(tmp_path, document(cluster={"certificate-authority": "ca.crt"})), clock=looks)
    of_a_pod = Rotation(in_cluster(environment=IN_POD, directory=pod), clock=looks)
    for rotation in by_kubeconfig, of_a_pod:
        file.write_bytes(authority.bundle)
        before = trusted_by(rotation)
        file.write_bytes(b"")
        assert trusted_by(rotation) == before
        file.unlink()
        assert trusted_by(rotation) == before
        file.write_bytes(other.bundle)
        assert len(trusted_by(rotation)) == 1
        assert trusted_by(rotation) != before


def test_a_client_certificate_that_is_replaced_is_shown(tmp_path: Path, looks: Clock, authority: Authority) -> None:
    pair = authority.issue_client("first").write(tmp_path, "client")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    rotation = Rotation(load(tmp_path, document(user), trusted=True), clock=looks)
    before = rotation.current().tls
    authority.issue_client("second").write(tmp_path, "client")
    assert pair.certificate.exists()
    assert rotation.current().tls is not before


# --- kubeconfigs by which a user wants to crash the process, fill its memory, or read by its errors what is in them


HUSH = "hush-hush-1234"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 200_000 + "]" * 200_000, "nested deeper than 64 levels"),  # the parser would overflow the stack
        ("[{a: " * 50_000, "nested deeper than 64 levels"),
        ("".join(f"{' ' * level}a:\n" for level in range(100)), "nested deeper than 64 levels"),
        ("a: &a [x]\nb: [*a, *a]", "aliases are not supported"),
        ("&a {<<: *a}", "aliases are not supported"),
        (b"a: b\n" * 1_000_000, "larger than 4194304 bytes"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: !!python/object/apply:os.system [id]", r"not valid YAML \(line 1\)"),
        (b"a: \xff", "not valid YAML"),
    ],
)
def test_what_would_crash_or_fill_the_process_is_refused(content: str | bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot read the kubeconfig .*{reason}"):
        load(tmp_path, content)


@pytest.mark.parametrize(
    "content",
    [
        f"users: *{HUSH}",
        f"password: !!int {HUSH}",
        f"password: !!float {HUSH}",
        f"password: !!bool {HUSH}",
        f"password: !{HUSH} x",
        f'password: "\\q{HUSH}"',
        f"{HUSH}: [",
        HUSH,
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_no_error_quotes_it(content: str, trusted: bool, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, content, trusted=trusted)
    assert HUSH not in str(refused.value)


def test_who_trusts_it_may_use_aliases(tmp_path: Path) -> None:
    assert read_kubeconfig(write(tmp_path, "a: &a [x]\nb: *a"), trusted=True) == {"a": ["x"], "b": ["x"]}


def test_a_name_for_tls_is_text_whatever_it_was(tmp_path: Path) -> None:
    assert load(tmp_path, document(cluster={"tls-server-name": 5})).tls_server_name == "5"


async def test_a_token_file_without_end_is_not_read_to_its_end() -> None:
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match="larger than"):
        await TokenFile(Path("/dev/zero")).authorization()
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (Path.mkdir, "it is a directory; use the path of a file in it"),
        (os.mkfifo, "it is not a regular file; use the path of a file"),
        (lambda _: None, "the file does not exist; mount it, or correct the path"),
    ],
)
def test_what_is_no_file_is_refused_at_once(make: Callable[[Path], None], remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    make(path)
    with pytest.raises(ConfigurationError) as refused:
        load_kubeconfig(path)
    assert str(refused.value) == f"cannot read the kubeconfig {path}: {remedy}"
