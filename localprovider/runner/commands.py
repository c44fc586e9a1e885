"""Local command line of each program of a control plane.

Arguments and variables are those of the manifest that `flags` allows, except for the addresses and output files of a
server, and for those that only make sense in a pod. The name of the Deployment determines the program: commands of
containers, and other commands of a pod (init containers, probes that run a command, hooks), are never run.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config import gardenlet, resource_manager
from gardener.tenant_files import UnusableFile
from gardener.tenant_files.kubeconfigs import kubeconfig
from gardener.tenant_files.reading import decoded, written
from kube.objects import Object, mapping, text, texts
from localprocesses.assets import Assets, find
from localprocesses.components import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, STAGES, kwok
from localprocesses.confined import OutsideError
from localprocesses.local import HOST, PATIENT, LocalProcessError
from localprocesses.versions import NEWEST, known
from localprovider.runner.addresses import Here
from localprovider.runner.flags import (
    AGENT_FLAGS,
    AGENT_VARIABLES,
    APISERVER_FLAGS,
    CONTROLLER_MANAGER_FLAGS,
    KUBERNETES_VARIABLES,
    MACHINES_FLAGS,
    MACHINES_KUBECONFIG,
    SCHEDULER_FLAGS,
    Rule,
    read,
)
from localprovider.runner.volumes import Refused

RESOURCE_MANAGER, GARDENLET = "gardener-resource-manager", "gardenlet"
MACHINES = "machine-controller-manager"

_CONFIG = "--config="
_MAKE_PODS = ("deployment-controller", "replicaset-controller")

Call = Callable[[Object, Here, "Ports"], list[str]]
Ports = Mapping[str, int]
"""Ports of a program's servers, by name."""


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration file of a program of ours, with local addresses.

    Attributes:
        connection: field with the connection to the seed, in which it runs.
        servers: field -> name of the port.
        kind: kind of the file.
    """

    connection: str
    servers: Mapping[str, str]
    kind: str

    def read(self, content: bytes, *, here: Here, files: Mapping[str, bytes]) -> Object:
        """Return the configuration with local paths. `files` are all mounted files, by local path and with local
        content.

        Raises:
            Refused: it is unreadable, or names a file that is not mounted.
        """
        try:
            config = mapping(decoded(content))
        except UnusableFile as error:
            raise Refused(f"the file of --config {error}") from error
        if config.get("kind") != self.kind:
            raise Refused(f"the file of --config must have kind {self.kind}")
        # The program connects to its seed as the runner does.
        return _with_paths({**config, self.connection: _without_kubeconfig(config.get(self.connection))}, here, files)

    def served(self, config: Object, *, ports: Ports, seed_kubeconfig: Path) -> bytes:
        """Return the configuration with local servers, and with the seed's API server as seen from outside the seed."""
        given = mapping(config.get("server"))
        server = {
            field: {**mapping(given.get(field)), "bindAddress": HOST, "port": ports[name]}
            for field, name in self.servers.items()
        }
        connection = {**mapping(config.get(self.connection)), "kubeconfig": str(seed_kubeconfig)}
        own = {field: value for field, value in config.items() if field not in _NOT_HERE}
        election = {**mapping(config.get("leaderElection")), **PATIENT}
        return written({**own, self.connection: connection, "server": server, "leaderElection": election}).encode()


_NOT_HERE = ("tracing", "debugging")
"""Blocks that are left out."""
_KUBECONFIG, _DIRECTORY = "kubeconfig", "serverCertDir"
_PATHS = (_KUBECONFIG, _DIRECTORY, "clientCAFile")
"""Fields in all configurations that name files."""


def _without_kubeconfig(connection: object) -> Object:
    return {field: value for field, value in mapping(connection).items() if field != _KUBECONFIG}


def _with_paths(block: Object, here: Here, files: Mapping[str, bytes]) -> Object:
    """Return the block with local paths.

    Raises:
        Refused: it names a file that is not mounted.
    """
    found: Object = {}
    for field, value in block.items():
        if field in _PATHS and value:
            found[field] = _path(field, text(value), here, files)
        else:
            found[field] = _with_paths(value, here, files) if isinstance(value, dict) else value
    return found


def _path(field: str, path: str, here: Here, files: Mapping[str, bytes]) -> str:
    try:
        found = str(here.file(path, is_directory=field == _DIRECTORY))
        if field == _KUBECONFIG:
            kubeconfig(files.get(found, b""), token_files=files)
        return found
    except (OutsideError, UnusableFile) as error:
        raise Refused(f"{field} {path} of a configuration: {error}") from error


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a control plane.

    Attributes:
        servers: names of its local ports, the probed one first.
        call: returns its command line, or raises LocalProcessError, Refused or NotBuilt.
        is_called: whether other programs have its ports in their configuration.
        variables: permitted ones of its environment; see `flags`.
        config: None if its files are the same as in a pod.
        reads: files of this project that it reads.
    """

    servers: tuple[str, ...]
    call: Call
    variables: Mapping[str, Rule]
    is_called: bool = False
    config: Config | None = None
    reads: tuple[Path, ...] = ()


def _arguments(container: Object, rules: Mapping[str, Rule], here: Here, **own: str) -> list[str]:
    """Return the permitted arguments of the container, without the program, and own ones.

    Raises:
        Refused: an argument is not permitted.
    """
    given = [*texts(container.get("command"))[1:], *texts(container.get("args"))]
    return [*read(given, rules, here), *(f"--{name.replace('_', '-')}={value}" for name, value in own.items())]


def _apiserver(container: Object, here: Here, ports: Ports) -> list[str]:
    return [
        str(_assets(container).apiserver),
        *_arguments(
            container,
            APISERVER_FLAGS,
            here,
            bind_address=HOST,
            secure_port=str(ports[APISERVER]),
            # Default directory of its certificate if the Deployment names none.
            cert_dir=str(here.path("/tmp/certificates")),  # noqa: S108 - of the container
            audit_log_maxsize="100",
            audit_log_maxbackup="5",
            # No pod is behind the Service `kubernetes`, and 127.0.0.1 is refused as an endpoint.
            endpoint_reconciler_type="none",
            # No load balancer has to notice first that this server stops.
            shutdown_delay_duration="0s",
        ),
    ]


def _controller_manager(container: Object, here: Here, ports: Ports) -> list[str]:
    program = _assets(container).controller_manager
    # It creates this directory, and runs the programs in it.
    plugins = str(here.path("/tmp/plugins"))  # noqa: S108 - of the container
    given = _arguments(container, CONTROLLER_MANAGER_FLAGS, here, flex_volume_plugin_dir=plugins)
    return _kube_program(program, given, here, ports[CONTROLLER_MANAGER])


def without_pods(command: Sequence[str]) -> list[str]:
    """Disable controllers of a controller manager for a Shoot whose Deployments become processes here."""
    off = ",".join(f"-{each}" for each in _MAKE_PODS)
    return [f"{each},{off}" if each.startswith("--controllers=") else each for each in command]


def _scheduler(container: Object, here: Here, ports: Ports) -> list[str]:
    given = _arguments(container, SCHEDULER_FLAGS, here)
    return _kube_program(_assets(container).scheduler, given, here, ports[SCHEDULER])


def _kube_program(program: Path | None, given: Sequence[str], here: Here, port: int) -> list[str]:
    if program is None:
        raise LocalProcessError("a program of Kubernetes is not among those of this release")
    certificates = str(here.path("/tmp/certificates"))  # noqa: S108 - of the container
    # There is only one instance, which need not wait for the lease of the previous one.
    own = {"bind-address": HOST, "secure-port": str(port), "leader-elect": "false", "cert-dir": certificates}
    return [str(program), *given, *(f"--{name}={value}" for name, value in own.items())]


def _agent(container: Object, here: Here, _: Ports) -> list[str]:
    # Independent of the start command in its image.
    return [sys.executable, "-P", "-m", "agent", *read(texts(container.get("args")), AGENT_FLAGS, here)]


def config_file(command: Sequence[str]) -> str:
    """Return the only configuration file of a program of ours.

    Raises:
        Refused: there is none, or several.
    """
    found = [each.removeprefix(_CONFIG) for each in command if each.startswith(_CONFIG)]
    if len(found) != 1:
        raise Refused(f"it must have one argument {_CONFIG}FILE")
    return found[0]


def _of_ours(name: str, connection: str, *, kind: str, serves: str = "") -> Program:
    """Return a program of ours; `serves` is the field of a server in addition to those for probes and metrics."""
    servers = {"healthProbes": f"{name}-health", "metrics": f"{name}-metrics"} | ({serves: name} if serves else {})
    return Program(tuple(servers.values()), _agent, AGENT_VARIABLES, config=Config(connection, servers, kind))


def _machines(container: Object, here: Here, ports: Ports) -> list[str]:
    """Return the command of the simulator of Nodes and their pods, in place of the machine controller manager."""
    program = _available().kwok
    if program is None:
        raise LocalProcessError(
            "Nodes of Shoots need the program kwok; KUBEBUILDER_ASSETS names a directory without it"
        )
    wanted = f"--{MACHINES_KUBECONFIG}="
    given = [each for each in texts(container.get("command")) if each.startswith(wanted)]
    if len(given) != 1:
        raise Refused(f"its command must have {wanted}FILE")
    (argument,) = read(given, MACHINES_FLAGS, here)
    return kwok(program, Path(argument.removeprefix(wanted)), server=f"{HOST}:{ports[MACHINES]}")


PROGRAMS: Mapping[str, Program] = {
    APISERVER: Program((APISERVER,), _apiserver, KUBERNETES_VARIABLES, is_called=True),
    CONTROLLER_MANAGER: Program((CONTROLLER_MANAGER,), _controller_manager, KUBERNETES_VARIABLES),
    SCHEDULER: Program((SCHEDULER,), _scheduler, KUBERNETES_VARIABLES),
    # The simulator is another program than that of the Deployment.
    MACHINES: Program((MACHINES,), _machines, {}, reads=(STAGES,)),
    RESOURCE_MANAGER: _of_ours(
        RESOURCE_MANAGER,
        "sourceClientConnection",
        kind=resource_manager.COMPONENT.kind,
        serves="webhooks",
    ),
    GARDENLET: _of_ours(GARDENLET, "seedClientConnection", kind=gardenlet.COMPONENT.kind),
}
"""Programs by name of Deployment and container. Others are not run."""
OF_SHOOTS = frozenset(PROGRAMS) - {GARDENLET}
"""Programs in namespaces of Shoots."""


def _assets(container: Object) -> Assets:
    """Return the programs of the Kubernetes release of the image.

    Owners of Shoots choose it. A build takes minutes and a gigabyte, so only known releases are built.
    """
    version = text(container.get("image")).rpartition(":")[2]
    wanted = known(version)
    return _available(None if wanted == NEWEST else wanted)


class NotBuilt(Exception):
    """The programs of a release of Kubernetes have to be built first, which takes minutes."""

    def __init__(self, release: str) -> None:
        super().__init__(f"the programs of Kubernetes {release} are not built yet")
        self.release = release


def _available(release: str | None = None) -> Assets:
    found = find(release)
    if found is None:
        raise NotBuilt(release or NEWEST)
    return found


# --- etcd


def etcd(*, data: Path, certificates: Path, peers: int, clients: int, metrics: int) -> list[str]:
    """Return the command; `certificates` is a directory with server/tls.crt, server/tls.key and ca/bundle.crt."""
    client, peer = f"https://{HOST}:{clients}", f"http://{HOST}:{peers}"
    return [
        str(_available().etcd),
        f"--name={ETCD}",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={ETCD}={peer}",
        f"--listen-metrics-urls=http://{HOST}:{metrics}",
        "--client-cert-auth",
        f"--trusted-ca-file={certificates / 'ca/bundle.crt'}",
        f"--cert-file={certificates / 'server/tls.crt'}",
        f"--key-file={certificates / 'server/tls.key'}",
        # Data lost in a crash of the whole computer are not worth waiting for the disk at every write.
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={2 << 30}",
        "--auto-compaction-retention=30m",
        "--log-level=warn",
    ]
