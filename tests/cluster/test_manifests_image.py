"""The image, taken from the archive of a release and run without a container engine's daemon, as a Pod of the manifests
would have it run.

    make image-test

needs root and Debian's buildah, podman, runc and debootstrap; everywhere else these tests are skipped. The default base
can't be had on every machine, so the base is one that debootstrap makes, unless IMAGE_BASE names another.
"""

import base64
import json
import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import pytest

from devcluster.cluster import Cluster
from gardener.distribution import DISTRIBUTION
from kit.eventually import eventually
from kit.objects import bundle, config_map, managed_resource
from kit.processes.deployed_pods import DeployedPod
from kit.processes.webhooks import pod_review
from kit.world import Place
from kube.errors import KubeError
from kube.objects import Object
from release import plan
from release.oci import digest_in
from release.plan import Release

PROJECT = Path(__file__).parents[2]
WHERE = Path(os.environ.get("IMAGE_TEST_DIRECTORY") or "/var/tmp/resource-manager-image")
IMAGE, DEFAULT_BASE = "localhost/resource-manager:test", "localhost/debian-python:test"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
NAMESPACE, NAME = "garden", "gardener-resource-manager"
NONROOT = 65532
PATIENCE = 60.0

pytestmark = [
    pytest.mark.skipif("IMAGE_TEST" not in os.environ, reason="takes minutes; run by `make image-test`"),
    pytest.mark.timeout(1800),
]


def run(*command: str, **environment: str) -> str:
    given = {**os.environ, "CONTAINERS_STORAGE_CONF": str(WHERE / "storage.conf"), **environment}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=given, cwd=PROJECT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.strip()


def podman(*arguments: str) -> str:
    return run("podman", "--runtime", "runc", *arguments)


# --- building


@pytest.fixture(scope="module")
def image() -> str:
    WHERE.mkdir(parents=True, exist_ok=True)
    storage = f'[storage]\ndriver = "vfs"\nrunroot = "{WHERE}/run"\ngraphroot = "{WHERE}/graph"\n'
    (WHERE / "storage.conf").write_text(storage)
    release = Release(version="0.0.0", revision="tested", registry="localhost", base=base())
    archive = WHERE / release.image_file
    archive.unlink(missing_ok=True)
    for command in plan.build_image(release, "buildah", context=PROJECT, archive=archive):
        run(*command, **builder())
    run("buildah", "rmi", "--force", f"{release.image}:{release.tag}")  # as on a machine that has the archive alone
    podman("tag", podman("pull", "--quiet", f"oci-archive:{archive}"), IMAGE)
    print(f"archive: {archive.stat().st_size / 1e6:.0f} MB, {digest_in(archive)}")
    return IMAGE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((), "Give-BASE-with-a-digest"), (("--build-arg", f"BASE={DEFAULT_BASE}"), "has no digest; add it")],
)
def test_a_base_without_a_digest_is_refused(image: str, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        build(*arguments, "--tag", f"{image}-refused")


def build(*arguments: str) -> None:
    """Without what earlier builds have left, and all times set alike."""
    run("buildah", "bud", "--no-cache", "--timestamp", "0", *arguments, ".", **builder())


def builder() -> dict[str, str]:
    """What buildah needs here, as variables of the environment."""
    volumes = []
    if CERTIFICATES.exists():  # those of this machine: it may reach package registries through a proxy
        pip = WHERE / "pip.conf"
        pip.write_text(f"[global]\ncert = {CERTIFICATES}\n")
        volumes = [f"{CERTIFICATES}:{CERTIFICATES}:ro", f"{pip}:/etc/pip.conf:ro"]
    configuration = WHERE / "containers.conf"
    configuration.write_text(f"[containers]\nvolumes = {json.dumps(volumes)}\n")
    return {"BUILDAH_ISOLATION": "chroot", "CONTAINERS_CONF": str(configuration)}


def base() -> str:
    """By digest."""
    return os.environ.get("IMAGE_BASE") or own_base()


def own_base() -> str:
    """Debian with Python and nothing else; made once."""
    if DEFAULT_BASE not in run("buildah", "images", "--format", "{{.Name}}:{{.Tag}}").splitlines():
        release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
        files = WHERE / "base"
        shutil.rmtree(files, ignore_errors=True)
        packages = "python3,python3-venv,ca-certificates"
        run("debootstrap", "--variant=minbase", f"--include={packages}", release["VERSION_CODENAME"], str(files))
        archive = WHERE / "base.tar"
        run("tar", "--directory", str(files), "--create", "--file", str(archive), ".")
        run("podman", "import", str(archive), DEFAULT_BASE)
        archive.unlink()
        shutil.rmtree(files)
    digest = run("podman", "image", "inspect", "--format", "{{.Digest}}", DEFAULT_BASE)
    return f"{DEFAULT_BASE.rpartition(':')[0]}@{digest}"


# --- running


class Container:
    """A container as the Pod describes it: user, read-only root, no capabilities, mounts, command."""

    def __init__(self, image: str, cluster: Cluster, pod: DeployedPod, name: str) -> None:
        spec = pod.container(name)
        server = urlsplit(cluster.url)
        arguments = ["--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"]
        # A container in this one has no cgroups to set limits in.
        arguments += ["--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
        arguments += [
            f"--env=KUBERNETES_SERVICE_HOST={server.hostname}",
            f"--env=KUBERNETES_SERVICE_PORT={server.port}",
        ]
        for mount in spec["volumeMounts"]:
            directory = pod.directory(mount)
            give(directory)
            mode = "ro" if mount.get("readOnly") else "rw"
            arguments.append(f"--volume={directory}:{mount['mountPath']}:{mode}")
        entry, *command = spec.get("command") or [""]
        if entry:  # else that of the image
            arguments.append(f"--entrypoint={entry}")
        self.name = f"{name}-{uuid.uuid4().hex[:8]}"
        podman("run", "--detach", "--name", self.name, *arguments, image, *command, *spec["args"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.log())
        podman("rm", "--force", "--time=5", self.name)

    def log(self) -> str:
        given = {**os.environ, "CONTAINERS_STORAGE_CONF": str(WHERE / "storage.conf")}
        command = ["podman", "logs", self.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=given)
        return done.stdout + done.stderr

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        podman("stop", "--time=20", self.name)
        return int(podman("inspect", "--format", "{{.State.ExitCode}}", self.name))


def give(directory: Path) -> None:
    """As kubelet gives volumes to the `fsGroup`."""
    for path in (directory, *directory.iterdir()):
        os.chown(path, 0, NONROOT)
        path.chmod(0o2770 if path.is_dir() else 0o440)


until = partial(eventually, seconds=PATIENCE, passing=(KubeError, OSError))


def is_ready(pod: DeployedPod) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{pod.probe_port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=1) as own:
        own.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        overlay = str(PROJECT / "manifests" / "overlays" / "runtime")
        run("kubectl", "--kubeconfig", str(own.kubeconfig), "apply", "--server-side", "-k", overlay)
        yield own


def pod_of(cluster: Cluster, app: str) -> Object:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{app}"
    found: list[Object] = until(lambda: cluster.api.get(path)["items"], f"a pod of {app}")
    return found[0]


SMALL = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
TOOLS = """
import importlib.util, json, os
modules = ["pip", "setuptools", "devcluster", "localprocesses", "kubectl"]
scripts = [name for name in os.listdir("/app/bin") if "kubectl" in name or "devcluster" in name]
print(json.dumps([name for name in modules if importlib.util.find_spec(name)] + scripts))
"""


def test_the_image_runs_as_nonroot_and_holds_no_tools(image: str) -> None:
    (found,) = json.loads(podman("image", "inspect", image))
    assert found["Config"]["User"] == f"{NONROOT}:{NONROOT}"
    assert found["Config"]["Labels"]["org.opencontainers.image.title"] == "resource-manager"
    (below,) = json.loads(podman("image", "inspect", base()))
    print(f"size: {found['Size'] / 1e6:.0f} MB, of which the base is {below['Size'] / 1e6:.0f} MB")
    assert (
        json.loads(podman("run", "--rm", "--network=none", *SMALL, "--entrypoint=python", image, "-I", "-c", TOOLS))
        == []
    )


def test_its_entry_point_is_every_program(image: str) -> None:
    usage = podman("run", "--rm", "--network=none", *SMALL, image, "--help")
    for program in ("ResourceManager", "ControllerManager", "Scheduler", "GardenWebhooks"):
        assert f"{program}Configuration: " in usage


def test_another_build_of_the_same_files_is_the_same_to_the_byte(image: str) -> None:
    again = f"{IMAGE}-again"
    build("--build-arg", f"BASE={base()}", "--tag", again)
    first, second = (json.loads(podman("image", "inspect", each))[0]["RootFS"] for each in (image, again))
    assert first == second


def test_the_bill_of_materials_names_what_is_locked(image: str, tmp_path: Path) -> None:
    target = f"{IMAGE}-sbom"
    build("--build-arg", f"BASE={base()}", "--target", "sbom", "--tag", target)
    container = run("buildah", "from", target)
    try:
        written = Path(run("buildah", "mount", container)) / "resource-manager.cdx.json"
        bill = json.loads(written.read_text())
    finally:
        run("buildah", "rm", container)
    locked = {line.split("==")[0] for line in (PROJECT / "requirements.txt").read_text().splitlines() if "==" in line}
    needed_by_old_ones = {"typing-extensions"}
    named = {component["name"].lower().replace("_", "-") for component in bill["components"]}
    assert locked - needed_by_old_ones <= named
    assert bill["metadata"]["component"]["name"] == DISTRIBUTION


def test_the_agent_works_in_its_container(image: str, own_cluster: Cluster, tmp_path: Path) -> None:
    pod = DeployedPod(own_cluster, pod_of(own_cluster, f"{NAME}-agent"), tmp_path / "agent", own_files=True)
    garden = Place(own_cluster, NAMESPACE)
    with Container(image, own_cluster, pod, "agent") as agent:
        until(lambda: is_ready(pod), "readiness")
        garden.create(bundle("one", config_map("made", namespace=NAMESPACE)))
        garden.create(managed_resource("one", spec={"class": "seed"}))
        until(lambda: garden.statuses("one")[0] == "True", "the ManagedResource to be applied")
        assert garden.get("ConfigMap", "made")
        assert agent.stop() == 0


def test_the_webhooks_answer_from_their_container(image: str, own_cluster: Cluster, tmp_path: Path) -> None:
    pod = DeployedPod(own_cluster, pod_of(own_cluster, NAME), tmp_path / "webhooks", own_files=True)
    review = pod_review(containers=[])
    review["request"]["namespace"] = NAMESPACE
    path = "/webhooks/mount-projected-service-account-token"
    with (
        Container(image, own_cluster, pod, "certificates") as certificates,
        Container(image, own_cluster, pod, NAME) as server,
    ):
        until(lambda: is_ready(pod), "readiness")
        secret = own_cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-ca")
        tls = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["bundle.crt"]).decode())
        tls.check_hostname = False
        request = urllib.request.Request(
            f"https://127.0.0.1:{pod.webhook_port}{path}",
            json.dumps(review).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
            assert json.load(answer)["response"]["uid"] == review["request"]["uid"]
        assert server.stop() == 0
        assert certificates.stop() == 0
