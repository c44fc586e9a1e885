"""The programs are found where they should be, built once where not, and what is missing is reported."""

import asyncio
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from kit.eventually import soon
from localprocesses import assets
from localprocesses.local import LocalProcessError
from localprovider.runner.places import Places
from localprovider.runner.pods import Pods
from localprovider.runner.processes import Processes

PROJECT = Path(__file__).resolve().parents[2]
WAITS = "waiting for another process"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

FAKE_GO = """#!/bin/sh
# Stands for Go: says what packages it compiles, and leaves two programs where -o says, as soon as it may.
echo "$*" >>"$GO_CALLS"
case "$1 $2" in
"list -m") echo '{"GoMod": "/cache/kubernetes.mod"}' ;;
"mod edit") echo '{"Go": "1.22.0", "Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"}]}' ;;
list*) printf 'a\\nb\\nc\\n' ;;
build*)
    cat go.mod >"$GO_CALLS.mod"
    for argument; do case "$argument" in -o=*) out="${argument#-o=}" ;; esac; done
    printf 'a\\nb\\nc\\n' >&2
    while [ -e "$GO_HOLD" ]; do sleep 0.05; done
    case "$*" in *./kwok) programs="controlplane kwok" ;; *) programs=controlplane ;; esac
    for program in $programs; do printf '#!/bin/sh\\n' >"$out$program"; chmod +x "$out$program"; done ;;
esac
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named go, first in PATH; the cache is empty."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(FAKE_GO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GO_HOLD", str(tmp_path / "hold"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return program


def calls(go: Path) -> list[str]:
    return [line.split()[0] for line in (go.parents[1] / "calls").read_text().splitlines()]


def test_what_is_built_is_kept_in_the_cache(go: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = assets.find_or_build()
    assert found.etcd.parent.parent == tmp_path / "cache" / "resource-manager-devcluster"
    assert {path.name for path in found.etcd.parent.iterdir()} == {*PROGRAMS, "controlplane"}
    assert re.search(r"built the control plane in \d+:\d\d\n", capsys.readouterr().err)

    assert assets.find_or_build() == found
    assert calls(go) == ["list", "build"]
    assert capsys.readouterr().err == ""


def test_releases_are_kept_side_by_side(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newest = assets.find_or_build()
    old = assets.find_or_build("1.30.14")
    assert "built the control plane in" in capsys.readouterr().err
    assert old.etcd.parent.parent == newest.etcd.parent.parent
    assert {path.name for path in old.etcd.parent.iterdir()} == {*PROGRAMS, "controlplane"}
    assert old.kwok is not None
    assert newest.kwok is not None
    assert old.kwok.samefile(newest.kwok)
    assert not old.apiserver.samefile(newest.apiserver)
    module = (go.parents[1] / "calls.mod").read_text()
    assert "\nrequire k8s.io/kubernetes v1.30.14\n" in module

    assert assets.find_or_build("1.30.14") == old
    assert assets.find_or_build("1.36.3") == assets.find_or_build() == newest
    assert calls(go) == ["list", "build", "list", "mod", "list", "build"]


def test_a_release_that_is_named_is_built_whatever_directory_is_named(
    go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "nothing"))
    assert assets.find_or_build("1.30.14").etcd.is_relative_to(assets.cache_directory())


def test_a_seed_needs_a_controller_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(mode=0o700)
    found = assets.find_or_build()
    with pytest.raises(LocalProcessError, match=rf"{tmp_path} lacks kube-controller-manager.*unset KUBEBUILDER_ASSETS"):
        assets.demand_controllers(found)


def test_processes_that_come_together_build_once(go: Path, tmp_path: Path) -> None:
    script = "from localprocesses.assets import find_or_build; print(find_or_build().etcd)"
    command = [sys.executable, "-c", script]
    hold, messages = tmp_path / "hold", tmp_path / "messages"
    hold.touch()
    with messages.open("a") as reported:
        both = [
            subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=reported, text=True) for _ in range(2)
        ]
    try:
        deadline = time.monotonic() + 60
        while WAITS not in messages.read_text():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.05)
    finally:
        hold.unlink()
        outputs = {process.communicate()[0] for process in both}
    assert len(outputs) == 1
    assert messages.read_text().count(WAITS) == 1
    assert calls(go) == ["list", "build"]


async def test_another_release_is_built_in_a_process_of_its_own(go: Path, tmp_path: Path) -> None:
    """With its progress, and again after a failure."""
    assets.find_or_build()
    works = go.read_text()
    go.write_text("#!/bin/sh\necho 'go: no route to host' >&2\nexit 1\n")
    processes = Processes(tmp_path / "run", now=time.monotonic)
    await processes.begin()
    async with aiohttp.ClientSession() as session:
        pods = Pods(Places(tmp_path / "shoots"), processes, session)

        async def says(expected: str) -> str:
            async with asyncio.timeout(60):
                while expected not in (found := (await pods.build("1.35.8")).problem):
                    await asyncio.sleep(0.1)
            return found

        assert "go: no route to host" in await says("Kubernetes 1.35.8 can't be built, and is tried again: ")
        (hold := tmp_path / "hold").touch()
        go.write_text(works)
        await says("building Kubernetes 1.35.8, 99 %")
        assert assets.find("1.35.8") is None
        hold.unlink()
        await soon(partial(assets.is_built, "1.35.8"), "the build")
    await processes.end()


def test_a_missing_go_is_reported_with_the_remedy(go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(go.parent / "nothing"))
    with pytest.raises(LocalProcessError, match=r"Go is not installed.*1\.26 or newer.*KUBEBUILDER_ASSETS"):
        assets.find_or_build()


def test_what_go_complains_of_is_shown_and_nothing_is_kept(go: Path) -> None:
    go.write_text("#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.19)' >&2\nexit 1\n")
    with pytest.raises(LocalProcessError, match=r"'go list' failed:\n  go: go.mod requires go >= 1.26.0[^\n]*\n.*Go"):
        assets.find_or_build()
    assert [path.suffix for path in assets.cache_directory().iterdir()] == [".lock"]


def test_a_named_directory_is_used_and_may_lack_what_is_optional(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(mode=0o755)
    found = assets.find_or_build()
    assert found.apiserver == tmp_path / "kube-apiserver"
    assert found.controller_manager is found.scheduler is found.kwok is None


def test_a_named_directory_without_the_api_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch(mode=0o755)
    with pytest.raises(LocalProcessError, match=r"KUBEBUILDER_ASSETS=.*program kube-apiserver is missing; set it to a"):
        assets.find_or_build()


def test_the_progress_shows_time_phase_and_packages() -> None:
    progress = assets.Progress("1.36.3", terminal=False)
    progress.phase("looking for modules")
    progress.step()
    assert re.fullmatch(r"\d:\d\d  looking for modules: 1 fetched", progress.line())
    progress.phase("compiling", 3)
    for _ in range(2):
        progress.step()
    assert re.fullmatch(r"\d:\d\d  compiling: 2 of 3 packages", progress.line())
    progress.step()
    assert re.fullmatch(r"\d:\d\d  linking: all 3 packages are compiled", progress.line())


@pytest.mark.skipif(not shutil.which("go"), reason="needs Go")
def test_packages_are_counted_that_are_really_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cache of Go that has some of them already."""
    monkeypatch.setenv("GOCACHE", str(tmp_path))
    progress = assets.Progress("1.36.3", terminal=False)
    module = assets.Module(assets.MODULE, ("-trimpath",), ("strconv",))
    assets._go(["build", *module.flags, "errors"], module.directory, progress)
    progress.phase("compiling", assets._count_packages(module, progress))
    assets._go(["build", "-v", *module.flags, *module.programs], module.directory, progress)
    assert re.search(r"linking: all [2-9] packages are compiled", progress.line())
