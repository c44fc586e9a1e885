"""Charts are rendered by helm, which can do no harm."""

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet.common.charts import program as running
from agent.gardenlet.common.charts.helm import LIMITS, ChartError, Helm, Release
from agent.gardenlet.common.charts.program import HelmError
from kit.chart_archives import packed
from localprocesses.helm_program import find_or_build

pytestmark = pytest.mark.timeout(600)

RELEASE = Release(name="e", namespace="extension-e", values={"word": "over"}, kubernetes="v1.33.1")
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
    ("files", "reported"),
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
async def test_what_helm_reports_is_reported(program: Path, files: Mapping[str, str], reported: str) -> None:
    with pytest.raises(ChartError, match=reported):
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
    ("files", "limits", "reported"),
    [
        (ENDLESS, {"cpu_seconds": 1}, "more than 1 s of CPU"),
        (ENDLESS, {"seconds": 0.5}, "took longer than 0.5 s$"),
        (GREEDY, {"memory": 256 << 20}, "more than 256 MiB of memory"),
        (LONG, {"output": 1 << 20}, "prints more than 1048576 bytes"),
    ],
    ids=["computing", "time", "memory", "output"],
)
async def test_a_chart_that_takes_too_much_is_ended(
    program: Path, files: Mapping[str, str], limits: dict[str, Any], reported: str
) -> None:
    with pytest.raises(HelmError, match=reported):
        await Helm(program=program, limits=replace(LIMITS, **limits)).render(packed(files), RELEASE)


async def test_others_do_not_wait_for_a_chart_that_takes_its_time(program: Path) -> None:
    helm = Helm(program=program, limits=replace(LIMITS, seconds=60.0, cpu_seconds=30))
    hostile = [asyncio.create_task(helm.render(packed(ENDLESS), RELEASE, chart="hostile")) for _ in range(3)]
    await asyncio.sleep(0)
    await helm.render(packed(), RELEASE, chart="good")
    assert not any(each.done() for each in hostile)
    for each in hostile:
        each.cancel()
    began = time.monotonic()
    await asyncio.gather(*hostile, return_exceptions=True)
    assert time.monotonic() - began < 30


async def test_without_helm_it_is_reported_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(running, "PROGRAM", "no-such-helm")
    with pytest.raises(HelmError, match=r"program no-such-helm .* is missing .*install it there, or use the image"):
        await Helm().render(packed(), RELEASE)


async def test_a_helm_that_crashes_is_no_broken_chart(tmp_path: Path) -> None:
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    with pytest.raises(HelmError, match="helm template was stopped"):
        await Helm(program=program).render(packed(), RELEASE)
