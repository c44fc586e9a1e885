"""Charts are pulled by helm from registries that may give anything, and want credentials."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from agent.gardenlet.common.charts import registry as fetching
from agent.gardenlet.common.charts.program import MIB
from agent.gardenlet.common.charts.registry import LIMITS, Registry
from agent.gardenlet.common.charts.rules.registries import RegistryError, reference
from kit.chart_archives import packed
from kit.chart_registry import FakeRegistry, basic, digest_of, proxy_to
from kit.eventually import soon
from localprocesses.helm_program import find_or_build
from localprocesses.pki import Authority

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def program() -> Path:
    return find_or_build()


@pytest.fixture
async def fake() -> AsyncIterator[FakeRegistry]:
    fake = FakeRegistry()
    async with fake.serving():
        fake.tag("1", fake.archive)
        yield fake


@pytest.fixture
def registry(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Leaves nothing where charts are pulled to."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(fetching, "_MEMORY", str(place))
    return Registry(program=program)


async def test_what_has_been_pulled_of_a_digest_is_kept(fake: FakeRegistry, registry: Registry) -> None:
    digest = fake.tag("1.0.0-a_b", fake.archive)
    chart = await registry.chart(fake.reference("1.0.0-a_b"))
    assert (chart.digest, chart.archive) == (digest, fake.archive)
    fake.requests.clear()
    assert await registry.chart(fake.reference(digest)) == chart
    assert not fake.requests
    other = fake.tag("1.0.0-a_b", packed({"templates/b.yaml": "b: c\n"}))
    assert (await registry.chart(fake.reference("1.0.0-a_b"))).digest == other
    assert (await Registry(program=registry.program).chart(fake.reference(digest))).archive == fake.archive


async def test_not_more_is_kept_than_may_be(fake: FakeRegistry, program: Path) -> None:
    digest = fake.tag("1", fake.archive)
    registry = Registry(program=program, kept=len(fake.archive) - 1)
    for _ in range(2):
        await registry.chart(fake.reference(digest))
    assert fake.requests.count(f"/v2/charts/c/manifests/{digest}") == 2


async def test_anybody_gets_a_token(fake: FakeRegistry, registry: Registry) -> None:
    fake.token = "t"
    assert (await registry.chart(fake.reference("1"))).archive == fake.archive


async def test_what_is_not_what_was_named_is_refused(fake: FakeRegistry, registry: Registry) -> None:
    digest = digest_of(b"what was meant")
    fake.tags[digest] = fake.tags["1"]
    with pytest.raises(RegistryError, match="digest"):
        await registry.chart(fake.reference(digest))
    blob = digest_of(fake.archive)
    for content in (b"x" * len(fake.archive), fake.archive + b"x"):
        fake.blobs[blob] = content
        with pytest.raises(RegistryError, match="mismatch"):
            await registry.chart(fake.reference("1"))


async def test_what_is_too_large_is_refused(fake: FakeRegistry, registry: Registry, tmp_path: Path) -> None:
    large = os.urandom(8 * MIB)
    fake.tag("1", large)
    assert (await registry.chart(fake.reference("1"))).archive == large
    fake.tag("2", large + b"x")
    with pytest.raises(RegistryError, match="at most 8388608 bytes"):
        await registry.chart(fake.reference("2"))
    fake.tag("3", bytes(200 * MIB))
    with pytest.raises(RegistryError, match="more than 192 MiB of memory"):
        await registry.chart(fake.reference("3"))
    assert not list((tmp_path / "place").iterdir())


@pytest.fixture
def credentials(tmp_path: Path, fake: FakeRegistry) -> Path:
    """For the registry, and for another host; with a program that is not to be run."""
    auths = {
        host: {"auth": basic(password).removeprefix("Basic ")}
        for host, password in ((fake.host, "good"), ("registry.example.com", "other"))
    }
    (tmp_path / "config.json").write_bytes(orjson.dumps({"auths": auths}))
    return tmp_path


@pytest.mark.parametrize("token", ["", "t"], ids=["password", "token for a password"])
async def test_credentials_are_given_if_they_are_requested(
    fake: FakeRegistry, registry: Registry, credentials: Path, token: str
) -> None:
    fake.password, fake.token = "good", token
    known = Registry(program=registry.program, credentials=credentials)
    assert (await known.chart(fake.reference("1"))).archive == fake.archive
    assert fake.sent[0][1] == "", "not before the registry has requested them"
    with pytest.raises(
        RegistryError, match=r"give credentials for 127\.0\.0\.1:\d+ .* config\.json of .* DOCKER_CONFIG"
    ):
        await registry.chart(fake.reference("1"))
    fake.password = "renewed"
    with pytest.raises(RegistryError, match=rf"status code 401; give credentials .* of {credentials}") as raised:
        await known.chart(fake.reference("1"))
    assert not any(secret in str(raised.value) for secret in ("good", basic("good")[6:]))


async def test_credentials_are_read_when_they_are_needed(
    fake: FakeRegistry, registry: Registry, credentials: Path
) -> None:
    fake.password, known = "good", Registry(program=registry.program, credentials=credentials)
    file = credentials / "config.json"
    content = file.read_bytes()
    for broken in (content[:-9], b'{"auths": {"HOST": {"auth": "czNjcmV0"}}}'.replace(b"HOST", fake.host.encode())):
        file.write_bytes(broken)
        with pytest.raises(RegistryError, match="invalid config format; correct config.json of") as raised:
            await known.chart(fake.reference("1"))
        assert "s3cret" not in str(raised.value)
    file.unlink()
    with pytest.raises(RegistryError, match="give credentials"):
        await known.chart(fake.reference("1"))
    file.write_bytes(content)
    assert (await known.chart(fake.reference("1"))).archive == fake.archive


@pytest.mark.parametrize("token", ["", "t"], ids=["password", "token"])
async def test_credentials_do_not_follow_to_another_host(
    fake: FakeRegistry, program: Path, credentials: Path, token: str
) -> None:
    fake.password, fake.token = "" if token else "good", token
    elsewhere = fake.host.replace("127.0.0.1", "localhost")
    fake.elsewhere = f"http://{elsewhere}"
    known = Registry(program=program, credentials=credentials)
    if token:
        assert (await known.chart(fake.reference("1"))).archive == fake.archive
    else:  # the other host wants the password, too, and does not get it
        with pytest.raises(RegistryError, match="status code 401") as raised:
            await known.chart(fake.reference("1"))
        assert "s3cret" not in str(raised.value)
    assert {given for host, given in fake.sent if host == elsewhere} == {""}
    assert {given for host, given in fake.sent if host != elsewhere} > {""}


async def test_what_a_registry_reports_is_not_shown(fake: FakeRegistry, registry: Registry) -> None:
    fake.answer = web.json_response({"errors": [{"code": "DENIED", "message": "no 's3cret'\nfor you"}]}, status=403)
    with pytest.raises(RegistryError, match="status code 403; give credentials") as raised:
        await registry.chart(fake.reference("1"))
    assert "for you" not in str(raised.value)
    assert "s3cret" not in str(raised.value)


async def test_what_is_not_there_is_reported(fake: FakeRegistry, registry: Registry) -> None:
    with pytest.raises(RegistryError, match=r"charts/c:2: .* not found; correct repository, tag or digest"):
        await registry.chart(fake.reference("2"))
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:1/c:1: .* refused"):
        await registry.chart(reference({"ref": "127.0.0.1:1/c:1"}))


async def test_a_registry_that_hangs_is_left(fake: FakeRegistry, registry: Registry, tmp_path: Path) -> None:
    fake.answers.clear()
    impatient = Registry(program=registry.program, limits=replace(LIMITS, seconds=0.2))
    with pytest.raises(RegistryError, match=r"took longer than 0\.2 s; check the connection to the registry"):
        await impatient.chart(fake.reference("1"))
    pulls = [asyncio.create_task(registry.chart(fake.reference("1"))) for _ in range(9)]
    await soon(lambda: len(list((tmp_path / "place").iterdir())) == 2, "two pulls at once")
    for pull in pulls:
        pull.cancel()
    await asyncio.gather(*pulls, return_exceptions=True)
    assert not list((tmp_path / "place").iterdir())


async def test_a_pull_that_is_given_up_leaves_no_processes(tmp_path: Path) -> None:
    program, file = tmp_path / "helm", tmp_path / "pid"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {file}.new; mv {file}.new {file}\nwait\n")
    program.chmod(0o755)
    pull = asyncio.create_task(Registry(program=program).chart(reference({"ref": "127.0.0.1:1/c:1"})))
    await soon(file.exists, "a process of the program")
    pull.cancel()
    await asyncio.gather(pull, return_exceptions=True)
    stat = Path(f"/proc/{file.read_text().strip()}/stat")
    await soon(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z", "its end")


async def test_helm_gets_little_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HELM_PLUGINS", "DOCKER_CONFIG", "GARDENLET_SECRET", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, str(tmp_path))
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nenv >&2; exit 1\n")
    program.chmod(0o755)
    with pytest.raises(RegistryError) as raised:
        await Registry(program=program).chart(reference({"ref": "127.0.0.1:1/c:1"}))
    lines = str(raised.value).removeprefix("127.0.0.1:1/c:1: ").splitlines()
    assert [line for line in lines if str(tmp_path) in line and not line.startswith("_=")] == [
        f"HTTPS_PROXY={tmp_path}"
    ]
    assert "HTTP_PROXY=http://127.0.0.1:1" in lines


@asynccontextmanager
async def far_away(
    monkeypatch: pytest.MonkeyPatch, place: Path, *, has_tls: bool = True
) -> AsyncIterator[FakeRegistry]:
    """At every address with TLS, with an authority that an environment variable names."""
    authority = Authority.create("of registries")
    pair = authority.issue_server(["registry.example.com"])
    for name, content in (("ca", authority.bundle), ("crt", pair.certificate), ("key", pair.key)):
        (place / name).write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(place / "crt", place / "key")
    fake = FakeRegistry()
    fake.tag("1", fake.archive)
    monkeypatch.setenv("SSL_CERT_FILE", str(place / "ca"))
    for name in ("SSL_CERT_DIR", "NO_PROXY", "no_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with fake.serving(tls=context if has_tls else None) as port, proxy_to(port) as address:
        monkeypatch.setenv("HTTPS_PROXY", address)
        yield fake


async def test_elsewhere_there_has_to_be_tls(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with far_away(monkeypatch, tmp_path) as fake:
        wanted = fake.reference("1", host="registry.example.com")
        fake.token = "t"
        assert (await registry.chart(wanted)).archive == fake.archive
        with pytest.raises(RegistryError, match=r"certificate is valid for registry\.example\.com"):
            await registry.chart(fake.reference("1", host="other.example.com"))
        fake.elsewhere = "http://other.example.com"
        with pytest.raises(RegistryError, match="proxyconnect .* refused"):
            await registry.chart(wanted)
        directory = tmp_path / "authorities"
        directory.mkdir()
        (tmp_path / "ca").rename(directory / "0123abcd.0")
        (tmp_path / "ca").write_bytes(b"")
        with pytest.raises(RegistryError, match="set SSL_CERT_FILE to a file"):
            await registry.chart(wanted)
        fake.elsewhere = ""
        monkeypatch.setenv("SSL_CERT_DIR", str(directory))
        assert (await registry.chart(wanted)).archive == fake.archive


async def test_a_registry_that_knows_no_tls_is_not_queried_without(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with far_away(monkeypatch, tmp_path, has_tls=False) as fake:
        with pytest.raises(RegistryError, match="HTTP response to HTTPS client"):
            await registry.chart(fake.reference("1", host="registry.example.com"))
        assert not fake.requests
