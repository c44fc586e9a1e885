"""Each file of a release is installed from the archive into a fresh place, and works there.

The image is tested in `test_manifests_image.py`, where there is a builder.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from PyInstaller.archive.readers import CArchiveReader  # type: ignore[import-untyped]

from devcluster.cluster import Cluster
from kit.charts import by_expressions, by_helm
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import managed_resource
from kit.world import Place
from kube.errors import Conflict, KubeError, NotFound, TooManyRequests
from release.__main__ import main

PROJECT = Path(__file__).parents[2]
PLUGINS = ("mr", "gardener", "mss")
AGENT = "gardener-resource-manager-agent"

pytestmark = [
    pytest.mark.skipif(not (PROJECT / ".git").exists(), reason="needs the repository: a release has what is committed"),
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make release` makes, but for the bill of materials: the tool that writes it is installed from the network."""
    directory = tmp_path_factory.mktemp("release")
    tool = directory / "bill"
    tool.write_text('#!/bin/sh\nfor file; do :; done\necho "{}" > "$file"\n')
    tool.chmod(0o755)
    assert main(["--bill-tool", str(tool), "--output", str(directory / "dist")]) == 0
    return directory / "dist"


@pytest.fixture(scope="module")
def own(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=1) as cluster:
        yield cluster


def only(directory: Path, pattern: str) -> Path:
    (found,) = directory.glob(pattern)
    return found


def unpacked(archive: Path, directory: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(directory, filter="data")
    return directory


def run(
    *command: str, cluster: Cluster, directory: Path, path: Path | None = None, stdin: str = "", **more: str
) -> str:
    """With nothing of the checkout: neither as working directory, nor where Python or a shell look."""
    programs = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=directory,
        env={**kept, "PATH": programs, "HOME": str(directory), "KUBECONFIG": str(cluster.kubeconfig), **more},
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def shown(cluster: Cluster) -> None:
    """Makes a ManagedResource that plugins list, whatever is there already."""
    install_crd(cluster)
    made = managed_resource("shown", namespace="default")
    path = "/apis/resources.gardener.cloud/v1alpha1/namespaces/default/managedresources"
    with contextlib.suppress(Conflict):
        eventually(lambda: cluster.api.create(path, made), "the kind to be served", passing=(NotFound, TooManyRequests))


def assert_deployed(cluster: Cluster, namespace: str, image: str) -> None:
    """The Deployment is as requested, and its pods pass admission and are created."""
    place = Place(cluster, namespace)
    (container,) = place.get("Deployment", AGENT)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image
    pods = f"{place.path('Pod')}?labelSelector=app%3D{AGENT}"
    eventually(lambda: len(place.api.get(pods)["items"]) == 2, "pods", passing=(KubeError,))


def test_all_files_have_checksums_that_are_right(released: Path) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released, check=True, capture_output=True, text=True
    )
    assert len(checked.stdout.splitlines()) == len(list(released.iterdir())) - 1


def test_the_manifests_are_applied_from_the_archive(released: Path, own: Cluster, tmp_path: Path) -> None:
    unpacked(only(released, "resource-manager-manifests-*.tar.gz"), tmp_path)
    run("kubectl", "apply", "--server-side", "-k", "manifests/overlays/standalone", cluster=own, directory=tmp_path)
    assert_deployed(own, "resource-manager", "resource-manager:v0.1.0")
    shown(own)


def test_the_objects_of_the_chart_are_accepted(released: Path, own: Cluster, tmp_path: Path) -> None:
    """Rendered by Helm if it is there, and applied as Helm does it: definitions first, into the namespace of the release."""
    archive = only(released, "resource-manager-[0-9]*.tgz")
    chart = unpacked(archive, tmp_path) / "resource-manager"
    values = {"image": {"repository": "registry.example.com/resource-manager"}}
    namespace = "charted"
    objects = by_helm(archive, values, namespace) if shutil.which("helm") else by_expressions(chart, values, namespace)
    own.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    apply = ("kubectl", "apply", "--server-side", "-f")
    run(*apply, str(chart / "crds"), cluster=own, directory=tmp_path)
    run(*apply, "-", cluster=own, directory=tmp_path, stdin=yaml.safe_dump_all(objects))
    assert_deployed(own, namespace, "registry.example.com/resource-manager:v0.1.0")


def test_helm_installs_the_chart(released: Path, devcluster_run: object, tmp_path: Path) -> None:
    if not shutil.which("helm"):
        pytest.skip("needs helm")
    chart = str(only(released, "resource-manager-[0-9]*.tgz"))
    with Cluster(nodes=1) as fresh:
        where = ("--namespace", "charted", "--create-namespace")
        run("helm", "install", "resource-manager", chart, *where, cluster=fresh, directory=tmp_path)
        assert_deployed(fresh, "charted", "resource-manager:v0.1.0")


def test_the_wheel_is_installed_into_a_fresh_environment(released: Path, own: Cluster, tmp_path: Path) -> None:
    """The packages that it needs are those of this environment: no index is queried."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    wheel = str(only(released, "gardener_resource_manager_*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-compile", wheel], check=True, capture_output=True)
    of_python = f"lib/python{sysconfig.get_python_version()}/site-packages"
    needed = {"PYTHONPATH": sysconfig.get_path("purelib")}

    def called(*command: str) -> str:
        return run(*command, cluster=own, directory=tmp_path, path=environment / "bin", **needed)

    found = called("python", "-c", "import agent, kubectl; print(agent.__file__, kubectl.__file__)").split()
    assert all(Path(each).is_relative_to(environment / of_python) for each in found)
    shown(own)
    assert re.search(r"^default +shown ", called("kubectl", "mr", "get", "-A"), re.MULTILINE)
    for program in ("kubectl-gardener", "kubectl-mss", "resource-manager-agent", "resource-manager-webhooks"):
        assert "usage:" in called(program, "--help").lower()


@pytest.fixture
def programs(released: Path, tmp_path: Path) -> Path:
    """The single files, under the names that kubectl looks for."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for plugin in PLUGINS:
        shutil.copy(only(released, f"kubectl-{plugin}-v0.1.0-*"), directory / f"kubectl-{plugin}")
        (directory / f"kubectl_complete-{plugin}").symlink_to(f"kubectl-{plugin}")
    return directory


def test_the_single_files_need_nothing_else(programs: Path, own: Cluster, tmp_path: Path) -> None:
    def called(*command: str) -> str:
        return run(*command, cluster=own, directory=tmp_path, path=programs)

    shown(own)
    assert re.search(r"^default +shown ", called("kubectl", "mr", "get", "-A"), re.MULTILINE)
    for plugin in PLUGINS:
        assert f"Usage: kubectl {plugin} " in called("kubectl", plugin, "--help")
    assert "reconcile" in called("kubectl_complete-mr", "rec")
    assert "Usage: kubectl gardener why " in called("kubectl", "gardener", "why", "--help")


def test_a_single_file_has_the_tables_that_rules_read(released: Path) -> None:
    held = CArchiveReader(str(only(released, "kubectl-gardener-*"))).toc
    files = [path for path in (PROJECT / "gardener").rglob("*") if path.is_file()]
    tables = {str(path.relative_to(PROJECT)) for path in files if path.suffix not in {".py", ".pyc"}}
    assert len(tables) > 2
    assert tables <= set(held)


def test_a_single_file_states_what_it_has_to_be_called(programs: Path) -> None:
    other = (programs / "kubectl-mr").rename(programs / "other")
    done = subprocess.run([str(other)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: other is not the name of a plugin; rename this file to one of kubectl-mr, ")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_krew_finds_the_archive_and_the_program_in_it(plugin: str, released: Path, tmp_path: Path) -> None:
    manifest = yaml.safe_load((released / f"{plugin}.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    archive = released / platform["uri"].rpartition("/")[2]
    assert sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    program = unpacked(archive, tmp_path) / platform["bin"]
    linked = tmp_path / f"kubectl-{plugin}"  # as krew links it
    linked.symlink_to(program)
    done = subprocess.run([str(linked), "--help"], check=True, capture_output=True, text=True)
    assert f"Usage: kubectl {plugin} " in done.stdout
