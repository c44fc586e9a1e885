"""Charts are rendered by helm, which can do no harm, and fetched from registries that may give anything."""

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from agent.gardenlet.charts import helm as rendering
from agent.gardenlet.charts import registry as fetching
from agent.gardenlet.charts.helm import ChartError, Helm, HelmError, Limits, Release
from agent.gardenlet.charts.registry import Registry
from agent.gardenlet.charts.rules.registries import Reference, RegistryError, reference
from kit.chart_archives import packed
from localprocesses.helm_program import find_or_build

pytestmark = pytest.mark.timeout(600)

RELEASE = Release(name="e", namespace="extension-e", values={"word": "over"}, kubernetes="v1.33.1")
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ENDLESS = {"templates/a.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"}
GREEDY = {"templates/a.yaml": "{{ range until 50000 }}{{ range until 1000 }}aaaaaaaaaaaaaaaaaaaa{{ end }}{{ end }}"}
LONG = {
    "templates/a.yaml": 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: "{{ repeat 300000 "aaaa" }}"\n'
}
BOMB = {f"big/{number}": "\0" * (9 << 19) for number in range(24)}
DEPENDENT = {
    "Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\ndependencies: [{name: d, version: 1.0.0, repository: 'https://127.0.0.1:1'}]\n"
}
RECURSIVE = {"templates/a.yaml": '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}'}
SCHEMA = {"values.schema.json": '{"properties": {"password": {"pattern": "^y"}}}', "templates/a.yaml": "a: b\n"}
REMOTE = {"values.schema.json": '{"$ref": "http://127.0.0.1:1/x"}', "templates/a.yaml": "a: b\n"}


@pytest.fixture(scope="module")
def program() -> Path:
    return find_or_build()


async def test_a_chart_is_rendered_without_anything_on_a_disk(program: Path) -> None:
    files = {"templates/a.yaml": "a: {{ .Values.word }}\n", "templates/NOTES.txt": "n", "crds/c.yaml": "a: c\n"}
    (found,) = await Helm(program=program).render(packed(files), RELEASE)
    assert (found.file, found.text) == ("c/templates/a.yaml", "a: over\n")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"templates/a.yaml": 'a: {{ fail "boo" }}\n'}, "boo"),
        ({"templates/a.yaml": "a: [b\n"}, "failed to sort manifests: YAML parse error on c/templates/a.yaml"),
        ({"Chart.yaml": "name: c\n", "templates/a.yaml": "a: b\n"}, "chart"),
        (REMOTE, "permission denied"),
        ({"templates/a.yaml": '{{ env "HOME" }}'}, 'function "env" not defined'),
        ({"big": "x" * (6 << 20)}, "larger than the maximum file size"),
        (BOMB, "decompressed chart is larger than the maximum"),
        (DEPENDENT, "missing in charts/ directory: d"),
        (RECURSIVE, "nested reference name"),
        ({"../../etc/x": "x"}, "chart illegally"),
    ],
    ids=[
        *("fails", "no YAML", "no chart", "wants the network", "wants the environment", "large file", "bomb"),
        *("dependency elsewhere", "recursion", "file elsewhere"),
    ],
)
async def test_what_helm_says_is_reported(program: Path, files: Mapping[str, str], said: str) -> None:
    with pytest.raises(ChartError, match=said):
        await Helm(program=program).render(packed(files), RELEASE)


@pytest.mark.parametrize(
    "template",
    [
        '{{ .Files.Get "/etc/passwd" }}{{ .Files.Get "../../../../etc/passwd" }}{{ .Files.Get "linked" }}',
        '{{ range (lookup "v1" "Secret" "" "").items }}{{ .metadata.name }}{{ end }}',
        '{{ getHostByName "localhost" }}',
        '{{ .Files.Get "/proc/self/environ" }}',
    ],
    ids=["files", "cluster", "names", "environment"],
)
async def test_a_chart_reads_nothing_but_itself(program: Path, template: str) -> None:
    files = {"templates/a.yaml": f"a: x{template}x\n"}
    archive = packed(files, links={"linked": "/etc/passwd", "templates/linked.yaml": "/etc/passwd"})
    (found,) = await Helm(program=program).render(archive, RELEASE)
    assert found.text == "a: xx\n"


async def test_helm_gets_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_PLUGINS", str(tmp_path))
    monkeypatch.setenv("GARDENLET_SECRET", "secret")
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nprintf -- '---\\n# Source: env\\n'; env\n")
    program.chmod(0o755)
    (found,) = await Helm(program=program).render(packed(), RELEASE)
    assert {line.partition("=")[0] for line in found.text.splitlines()} <= {
        *("GOMAXPROCS", "GOMEMLIMIT", "HOME", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"),
        *("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"),
    }
    assert str(tmp_path) not in found.text.replace(str(program), "")


@pytest.mark.parametrize(
    "files",
    [
        SCHEMA,
        {"templates/a.yaml": "{{ fail .Values.password }}"},
        {"templates/a.yaml": 'kind: Secret\nstringData: {a: {{ .Values.password }}: b: "{{ .Values.password }}"}\n'},
        {"templates/a.yaml": '{{ fail (printf "%s%s" (repeat 2040 "x") .Values.password) }}'},
        {"templates/a.yaml": '{{ fail (repeat 200000 "word") }}'},
    ],
    ids=["schema", "message", "manifest", "cut", "long"],
)
async def test_errors_are_short_and_hold_no_secrets(program: Path, files: Mapping[str, str]) -> None:
    values = {"password": "xy-zzy", "word": "over"}
    release = Release(name="e", namespace="extension-e", values=values, kubernetes="v1.33.1")
    with pytest.raises(ChartError) as raised:
        await Helm(program=program).render(packed(files), release)
    assert not re.search("xy-?z", str(raised.value))
    assert 20 < len(str(raised.value)) < 2100


@pytest.mark.parametrize(
    ("files", "limits", "said"),
    [
        (ENDLESS, Limits(cpu_seconds=1), "more than 1 s of computing"),
        (ENDLESS, Limits(seconds=0.5), "not rendered within 0.5 s"),
        (GREEDY, Limits(memory=256 << 20), "more than 256 MiB of memory"),
        (LONG, Limits(output=1 << 20), "print more than 1048576 bytes"),
    ],
    ids=["computing", "time", "memory", "output"],
)
async def test_a_chart_that_takes_too_much_is_ended(
    program: Path, files: Mapping[str, str], limits: Limits, said: str
) -> None:
    with pytest.raises(HelmError, match=said):
        await Helm(program=program, limits=limits).render(packed(files), RELEASE)


async def test_others_do_not_wait_for_a_chart_that_takes_its_time(program: Path) -> None:
    helm = Helm(program=program, limits=Limits(seconds=60.0, cpu_seconds=30))
    hostile = [asyncio.create_task(helm.render(packed(ENDLESS), RELEASE, chart="hostile")) for _ in range(3)]
    await asyncio.sleep(0)
    await helm.render(packed(), RELEASE, chart="good")
    assert not any(each.done() for each in hostile)
    for each in hostile:
        each.cancel()
    began = time.monotonic()
    await asyncio.gather(*hostile, return_exceptions=True)
    assert time.monotonic() - began < 30


async def test_without_helm_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(rendering, "PROGRAM", "no-such-helm")
    with pytest.raises(HelmError, match=r"there is no program no-such-helm .* install it there, or use the image"):
        await Helm().render(packed(), RELEASE)


async def test_a_helm_that_crashes_is_no_broken_chart(tmp_path: Path) -> None:
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    with pytest.raises(HelmError, match="helm was ended"):
        await Helm(program=program).render(packed(), RELEASE)


class FakeRegistry:
    """Speaks the protocol; what it has may be changed. A token is wanted if there is one.

    Attributes:
        password: wanted for the token, or else for everything; empty: anybody may ask.
        elsewhere: where blobs are.
        sent: host and credentials of each request.
    """

    def __init__(self) -> None:
        self.password = self.elsewhere = ""
        self.answers = asyncio.Event()
        self.answers.set()
        self.sent: list[tuple[str, str]] = []
        self.archive = packed()
        self.blobs: dict[str, bytes] = {}
        self.tags: dict[str, bytes] = {}
        self.token = ""
        self.requests: list[str] = []
        self.url = ""

    def tag(self, name: str, archive: bytes) -> str:
        """The digest of the manifest."""
        digest = _digest(archive)
        layers = [{"mediaType": LAYER, "digest": digest, "size": len(archive)}]
        manifest = orjson.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "layers": layers})
        self.blobs[digest] = archive
        self.tags[name] = self.tags[_digest(manifest)] = manifest
        return _digest(manifest)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        await self.answers.wait()
        given = request.headers.get("Authorization", "")
        self.sent.append((request.host, given))
        if self.password and (request.path == "/token" or not self.token) and given != _basic(self.password):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="r"'})
        if request.path == "/token":
            return web.json_response({"token": self.token})
        if self.elsewhere and "blobs" in request.path and not request.host.startswith("localhost"):
            return web.Response(status=307, headers={"Location": f"{self.elsewhere}{request.path}"})
        if (
            self.token
            and not request.host.startswith("localhost")
            and request.headers.get("Authorization") != f"Bearer {self.token}"
        ):
            asked = f'Bearer realm="{self.url}/token",service="r"'
            return web.Response(status=401, headers={"WWW-Authenticate": asked})
        kind, name = request.path.split("/")[-2:]
        content = (self.blobs if kind == "blobs" else self.tags).get(name)
        return web.Response(status=404) if content is None else web.Response(body=content)

    def reference(self, version: str) -> Reference:
        host = self.url.removeprefix("http://")
        return reference({"ref": f"{host}/charts/c{'@' if version.startswith('sha256') else ':'}{version}"})


def _basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
async def fake() -> AsyncIterator[FakeRegistry]:
    fake = FakeRegistry()
    app = web.Application()
    app.router.add_get("/{path:.*}", fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    fake.answers.set()
    await runner.cleanup()


async def test_what_has_been_fetched_of_a_digest_is_kept(fake: FakeRegistry) -> None:
    digest, registry = fake.tag("1", fake.archive), Registry()
    assert (await registry.chart(fake.reference("1"))).archive == fake.archive
    fake.requests.clear()
    assert (await registry.chart(fake.reference(digest))).archive == fake.archive
    assert await registry.digest(fake.reference(digest)) == digest
    assert not fake.requests
    other = fake.tag("1", packed({"templates/b.yaml": "b: c\n"}))
    assert await registry.digest(fake.reference("1")) == other
    assert (await registry.chart(fake.reference("1"))).digest == other


async def test_not_more_is_kept_than_may_be(fake: FakeRegistry) -> None:
    fake.tag("1", fake.archive)
    registry = Registry(kept=len(fake.archive) - 1)
    for _ in range(2):
        await registry.chart(fake.reference("1"))
    assert sum("blobs" in each for each in fake.requests) == 2


async def test_anybody_gets_a_token(fake: FakeRegistry) -> None:
    fake.tag("1", fake.archive)
    fake.token = "t"
    assert (await Registry().chart(fake.reference("1"))).archive == fake.archive


async def test_what_has_another_digest_or_size_is_refused(fake: FakeRegistry) -> None:
    fake.tag("1", fake.archive)
    blob = _digest(fake.archive)
    for content, said in ((b"x" * len(fake.archive), "instead of"), (fake.archive + b"x", "gave more than")):
        fake.blobs[blob] = content
        with pytest.raises(RegistryError, match=said):
            await Registry().chart(fake.reference("1"))
    digest = _digest(b"what was meant")
    fake.tags[digest] = fake.tags["1"]
    with pytest.raises(RegistryError, match="instead of"):
        await Registry().chart(fake.reference(digest))


@pytest.fixture
def credentials(tmp_path: Path, fake: FakeRegistry) -> Path:
    """For the registry, and for another host."""
    auths = {
        fake.url.removeprefix("http://"): {"auth": _basic("good").removeprefix("Basic ")},
        "registry.example.com": {"auth": _basic("other").removeprefix("Basic ")},
    }
    (tmp_path / "config.json").write_bytes(orjson.dumps({"auths": auths}))
    return tmp_path


@pytest.mark.parametrize("token", ["", "t"], ids=["password", "token for a password"])
async def test_credentials_are_given_if_they_are_asked_for(fake: FakeRegistry, credentials: Path, token: str) -> None:
    fake.tag("1", fake.archive)
    fake.password, fake.token = "good", token
    registry = Registry(credentials=credentials)
    assert (await registry.chart(fake.reference("1"))).archive == fake.archive
    assert fake.sent[0][1] == "", "not before the registry has asked"
    with pytest.raises(RegistryError, match=r"give credentials for 127\.0\.0\.1:\d+ in config\.json .* DOCKER_CONFIG"):
        await Registry().chart(fake.reference("1"))
    fake.password = "renewed"
    with pytest.raises(RegistryError, match="its credentials do not suffice") as raised:
        await registry.chart(fake.reference("1"))
    assert not any(secret in str(raised.value) for secret in ("good", _basic("good")[6:]))


async def test_credentials_are_read_when_they_are_needed(fake: FakeRegistry, credentials: Path) -> None:
    fake.tag("1", fake.archive)
    fake.password, registry = "good", Registry(credentials=credentials)
    file = credentials / "config.json"
    content = file.read_bytes()
    for broken, said in ((b'{"auths', "has no credentials: it is no JSON"), (None, "can't be read")):
        file.unlink() if broken is None else file.write_bytes(broken)
        with pytest.raises(RegistryError, match=said):
            await registry.chart(fake.reference("1"))
    file.write_bytes(content)
    assert (await registry.chart(fake.reference("1"))).archive == fake.archive


@pytest.mark.parametrize("token", ["", "t"], ids=["password", "token"])
async def test_credentials_do_not_follow_to_another_host(fake: FakeRegistry, credentials: Path, token: str) -> None:
    fake.tag("1", fake.archive)
    fake.password, fake.token = "" if token else "good", token
    fake.elsewhere = fake.url.replace("127.0.0.1", "localhost")
    elsewhere = fake.elsewhere.removeprefix("http://")
    registry = Registry(credentials=credentials)
    if token:
        assert (await registry.chart(fake.reference("1"))).archive == fake.archive
    else:  # the other host wants the password, too, and does not get it
        with pytest.raises(RegistryError, match="HTTP 401"):
            await registry.chart(fake.reference("1"))
    sent = {given for host, given in fake.sent if host == elsewhere}
    assert sent == {""}
    assert {given for host, given in fake.sent if host != elsewhere} > {""}


async def test_a_registry_that_refers_in_circles_is_left(fake: FakeRegistry) -> None:
    fake.tag("1", fake.archive)
    fake.elsewhere = fake.url
    with pytest.raises(RegistryError, match="refers elsewhere more than 5 times"):
        await Registry().chart(fake.reference("1"))


async def test_a_registry_that_hangs_is_left(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", 0.2)
    fake.tag("1", fake.archive)
    fake.answers.clear()
    with pytest.raises(RegistryError, match=r"does not answer within 0\.2 s"):
        await Registry().chart(fake.reference("1"))


async def test_what_is_not_there_is_said(fake: FakeRegistry) -> None:
    with pytest.raises(RegistryError, match=r"charts/c:2: the registry answered with HTTP 404"):
        await Registry().chart(fake.reference("2"))
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:1/c:1: "):
        await Registry().chart(reference({"ref": "127.0.0.1:1/c:1"}))
