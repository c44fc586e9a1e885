"""Pods of a Deployment as real processes: tests do for them what a kubelet does.

    with DeployedPod(cluster, pod, tmp_path) as deployed:
        with deployed.start("agent") as process:
            process.wait_until_ready()

Command, arguments, environment, volumes and the token of the ServiceAccount are those of a Pod that the cluster has; a
container without a command runs the entry point of the image. A
process of a test can't have a file system of its own, nor its own network, so this differs:

    mounted directories lie below a temporary one, and their paths are exchanged in arguments and mounted files
    servers listen on free ports of this machine
    the token and the CA of the ServiceAccount are named by a kubeconfig instead of being found where they always are
"""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from devcluster.cluster import Cluster
from kit.kubeconfigs import with_token_file, written
from kit.processes.agent import AgentProcess
from kube.objects import Object, key, metadata
from localprocesses.ports import free_port

DOCKERFILE = Path(__file__).resolve().parents[3] / "Dockerfile"
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

Change = Callable[[dict[str, Any]], None]


class ContainerProcess(AgentProcess):
    """A container's process."""

    def __init__(self, program: str, arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.program = program
        super().__init__(None, arguments=arguments, bare=True, environment=environment)


class DeployedPod:
    """One Pod of the cluster.

    Args:
        directory: where its volumes may lie.
        change: changes the configuration file, for what a test can't wait for.
        own_files: whether its processes have a file system of their own, with everything where the Pod states.
    """

    def __init__(
        self,
        cluster: Cluster,
        pod: Object,
        directory: Path,
        *,
        change: Change = lambda _: None,
        own_files: bool = False,
    ) -> None:
        self._cluster = cluster
        self._pod = pod
        self._spec = pod["spec"]
        self._change = change
        self.webhook_port, self.probe_port, self._metrics_port = free_port(), free_port(), free_port()
        self.tokens_port, self._front_proxy_port = free_port(), free_port()
        self._volumes: dict[str, Path] = {
            volume["name"]: directory / volume["name"] for volume in self._spec["volumes"]
        }
        self._directories = {
            mount["mountPath"]: self._volumes[mount["name"]]
            for container in self._spec["containers"]
            for mount in container["volumeMounts"]
            if not own_files
        }
        for volume in self._spec["volumes"]:
            self._fill(volume)

    # --- volumes

    def _fill(self, volume: Object) -> None:
        directory = self._volumes[volume["name"]]
        directory.mkdir(parents=True)
        for name, content in self._files(volume).items():
            (directory / name).write_bytes(self._translated(name, content))

    def _files(self, volume: Object) -> dict[str, bytes]:
        match volume:
            case {"projected": {"sources": sources}}:
                return {name: content for source in sources for name, content in self._projected(source).items()}
            case {"configMap": {"name": name}}:
                return self._config_map(name)
            case {"secret": {"secretName": name}}:
                return self._secret(name)
            case {"emptyDir": _}:
                return {}
        raise AssertionError(f"no container mounts {volume}")

    def _projected(self, source: Object) -> dict[str, bytes]:
        match source:
            case {"serviceAccountToken": {"path": path, "expirationSeconds": seconds}}:
                return {path: self._token(seconds).encode()}
            case {"configMap": {"name": name, "items": items}}:
                return _chosen(self._config_map(name), items)
            case {"secret": {"name": name, "items": items}}:
                return _chosen(self._secret(name), items)
            case {"downwardAPI": {"items": items}}:
                return {item["path"]: key(self._pod).namespace.encode() for item in items}
        raise AssertionError(f"no volume projects {source}")

    def _token(self, seconds: int) -> str:
        pod = {"apiVersion": "v1", "kind": "Pod", "name": key(self._pod).name, "uid": metadata(self._pod)["uid"]}
        request = {"spec": {"expirationSeconds": seconds, "boundObjectRef": pod}}
        path = self._path("serviceaccounts", f"{self._spec['serviceAccountName']}/token")
        return str(self._cluster.api.create(path, request)["status"]["token"])

    def _config_map(self, name: str) -> dict[str, bytes]:
        data = self._cluster.api.get(self._path("configmaps", name))["data"]
        return {file: text.encode() for file, text in data.items()}

    def _secret(self, name: str) -> dict[str, bytes]:
        data = self._cluster.api.get(self._path("secrets", name))["data"]
        return {file: base64.b64decode(text) for file, text in data.items()}

    def _path(self, plural: str, name: str) -> str:
        return f"/api/v1/namespaces/{key(self._pod).namespace}/{plural}/{name}"

    def _translated(self, name: str, content: bytes) -> bytes:
        if name not in {"config.yaml", "kubeconfig"}:
            return content
        document = yaml.safe_load(self._here(content.decode()))
        if name == "config.yaml":
            server = document["server"]
            if document["kind"] in {"ResourceManagerConfiguration", "GardenWebhooksConfiguration"}:
                server.setdefault("webhooks", {}).update({"bindAddress": "127.0.0.1", "port": self.webhook_port})
            for section, port in (("tokens", self.tokens_port), ("frontProxy", self._front_proxy_port)):
                if section in server:
                    server[section]["port"] = port
            server["healthProbes"] |= {"bindAddress": "127.0.0.1", "port": self.probe_port}
            server["metrics"] |= {"bindAddress": "127.0.0.1", "port": self._metrics_port}
            self._change(document)
        return json.dumps(document).encode()

    def _here(self, text: str) -> str:
        for path, directory in self._directories.items():
            text = text.replace(path, str(directory))
        return text

    # --- processes

    @property
    def config_file(self) -> Path:
        return next(path for volume in self._volumes.values() if (path := volume / "config.yaml").exists())

    def container(self, name: str) -> Object:
        (found,) = (each for each in self._spec["containers"] if each["name"] == name)
        return found  # type: ignore[no-any-return]

    def directory(self, mount: Object) -> Path:
        """What one of the `volumeMounts` shows."""
        return self._volumes[mount["name"]]

    def start(self, container: str, *arguments: str) -> AgentProcess:
        """To be used as a context manager, which ends it; `arguments` are added to those of the container."""
        found = self.container(container)
        given = found.get("command") or entry_point()
        start, program, command = given[:4], given[4], given[5:]
        assert start == ["env", "--block-signal=TERM", "python", "-m"]
        environment = {each["name"]: self._here(each["value"]) for each in found.get("env") or []}
        process = ContainerProcess(
            program,
            (*command, *(self._here(argument) for argument in found["args"]), *arguments),
            {**environment, "KUBECONFIG": str(self._in_cluster(found))},
        )
        process.probe_port, process.metrics_port = self.probe_port, self._metrics_port
        return process.start()

    def _in_cluster(self, container: Object) -> Path:
        """A kubeconfig that reports what is mounted for the ServiceAccount."""
        (mount,) = (each for each in container["volumeMounts"] if each["mountPath"] == SERVICE_ACCOUNT)
        directory = self._volumes[mount["name"]]
        path = directory / "in-cluster"
        content = with_token_file(self._cluster.url, ca=(directory / "ca.crt").read_bytes(), file=directory / "token")
        return written(path, content)


def entry_point() -> list[str]:
    (line,) = (each for each in DOCKERFILE.read_text().splitlines() if each.startswith("ENTRYPOINT "))
    command: list[str] = json.loads(line.removeprefix("ENTRYPOINT "))
    return command


def _chosen(files: Mapping[str, bytes], items: list[Object]) -> dict[str, bytes]:
    return {item["path"]: files[item["key"]] for item in items}
