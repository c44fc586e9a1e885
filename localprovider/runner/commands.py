"""How the programs of a control plane are called on this computer: a line a program.

Arguments are those of the manifest, but for where a server listens, and for what only makes sense in a pod.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from agent.gardenlet.image_overwrites import COMPONENTS_VARIABLE, VARIABLE
from kube.objects import Object, mapping, mappings, text, texts
from localprocesses.assets import Assets, find_or_build
from localprocesses.components import APISERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, kwok
from localprocesses.local import HOST, LocalProcessError
from localprocesses.versions import NEWEST, release
from localprovider.runner.addresses import Here

RESOURCE_MANAGER, GARDENLET = "gardener-resource-manager", "gardenlet"
MACHINES = "machine-controller-manager"

_NAMING_FILES = (VARIABLE, COMPONENTS_VARIABLE)
"""Variables of the environment that a program gets; others say where its pod is."""
_MAKE_PODS = ("deployment-controller", "replicaset-controller")

Call = Callable[[Object, Here, "Ports"], list[str]]
Ports = Mapping[str, int]
"""Of a program's servers, by name."""


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration file of a program of ours, whose addresses are others on this computer.

    Attributes:
        path: the end of it.
        connection: to the seed, in which it runs: the field.
        servers: field -> name of the port.
    """

    path: str
    connection: str
    servers: Mapping[str, str]

    def here(self, content: bytes, *, ports: Ports, seed_kubeconfig: Path) -> bytes:
        """With servers on this computer, and the seed's API server as somebody outside of it sees it.

        Raises: LocalProcessError: it can't be read.
        """
        try:
            config = mapping(yaml.safe_load(content))
        except yaml.YAMLError as error:
            raise LocalProcessError(f"a file that ends with {self.path} is no YAML: {error}") from error
        server = dict(mapping(config.get("server")))
        for field, name in self.servers.items():
            server[field] = {**mapping(server.get(field)), "bindAddress": HOST, "port": ports[name]}
        seed = {**mapping(config.get(self.connection)), "kubeconfig": str(seed_kubeconfig)}
        return yaml.safe_dump({**config, "server": server, self.connection: seed}).encode()


@dataclass(frozen=True, slots=True)
class Program:
    """Attributes:
    servers: names of its ports on this computer, the one that is probed first.
    call: its command line. Raises LocalProcessError.
    is_called: whether other programs have its ports in their configuration.
    config: None: its files are as they are in a pod.
    """

    servers: tuple[str, ...]
    call: Call
    is_called: bool = False
    config: Config | None = None


def _with(arguments: Sequence[str], **flags: str | None) -> list[str]:
    """The arguments with these flags; None: without it."""
    wanted = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    kept = [each for each in arguments if each.partition("=")[0] not in wanted]
    return kept + [f"{name}={value}" for name, value in wanted.items() if value is not None]


def _arguments(container: Object, here: Here) -> list[str]:
    """Those of the container, without the program."""
    given = [*texts(container.get("command"))[1:], *texts(container.get("args"))]
    return [here.text(each) for each in given]


def _apiserver(container: Object, here: Here, ports: Ports) -> list[str]:
    return [
        str(_assets(container).apiserver),
        *_with(
            _arguments(container, here),
            bind_address=HOST,
            secure_port=str(ports[APISERVER]),
            # No pod is behind the Service `kubernetes`, and 127.0.0.1 is refused as an endpoint.
            endpoint_reconciler_type="none",
            advertise_address=None,
            egress_selector_config_file=None,
            # No load balancer has to learn first that this server goes.
            shutdown_delay_duration="0s",
        ),
    ]


def _controller_manager(container: Object, here: Here, ports: Ports) -> list[str]:
    return _kube_program(_assets(container).controller_manager, container, here, ports[CONTROLLER_MANAGER])


def without_pods(command: Sequence[str]) -> list[str]:
    """Of a controller manager, for a Shoot whose Deployments become processes here."""
    off = ",".join(f"-{each}" for each in _MAKE_PODS)
    return [f"{each},{off}" if each.startswith("--controllers=") else each for each in command]


def _scheduler(container: Object, here: Here, ports: Ports) -> list[str]:
    return _kube_program(_assets(container).scheduler, container, here, ports[SCHEDULER])


def _kube_program(program: Path | None, container: Object, here: Here, port: int) -> list[str]:
    if program is None:
        raise LocalProcessError(f"there is no program {container.get('name')} among those of this release")
    # There is one of it, which need not wait for the lease of the one before.
    own = _with(_arguments(container, here), bind_address=HOST, secure_port=str(port), leader_elect="false")
    return [str(program), *own]


def _agent(container: Object, here: Here, _: Ports) -> list[str]:
    # However its image starts it.
    given = {text(each.get("name")): text(each.get("value")) for each in mappings(container.get("env"))}
    files = [f"{name}={here.text(given[name])}" for name in _NAMING_FILES if given.get(name)]
    program = [sys.executable, "-P", "-m", "agent", *(here.text(each) for each in texts(container.get("args")))]
    return ["env", *files, *program] if files else program


def _of_ours(name: str, path: str, connection: str, *, serves: str = "") -> Program:
    """Args: serves: field of a server besides those for probes and metrics."""
    servers = {"healthProbes": f"{name}-health", "metrics": f"{name}-metrics"} | ({serves: name} if serves else {})
    return Program(tuple(servers.values()), _agent, config=Config(path, connection, servers))


def _machines(container: Object, here: Here, ports: Ports) -> list[str]:
    """In place of what would make machines: what plays the Nodes of those that there would be, and their pods."""
    program = find_or_build().kwok
    if program is None:
        raise LocalProcessError(
            "Nodes of Shoots need the program kwok; KUBEBUILDER_ASSETS names a directory without it"
        )
    given = (each.partition("=") for each in _arguments(container, here))
    (kubeconfig,) = (value for flag, _, value in given if flag == "--target-kubeconfig")
    return kwok(program, Path(kubeconfig), server=f"{HOST}:{ports[MACHINES]}")


PROGRAMS: Mapping[str, Program] = {
    APISERVER: Program((APISERVER,), _apiserver, is_called=True),
    CONTROLLER_MANAGER: Program((CONTROLLER_MANAGER,), _controller_manager),
    SCHEDULER: Program((SCHEDULER,), _scheduler),
    MACHINES: Program((MACHINES,), _machines),
    RESOURCE_MANAGER: _of_ours(
        RESOURCE_MANAGER, "/gardener-resource-manager-config/config.yaml", "sourceClientConnection", serves="webhooks"
    ),
    GARDENLET: _of_ours(GARDENLET, "/gardenlet/config/config.yaml", "seedClientConnection"),
}
"""By name of Deployment and container. Others are not run."""


def _assets(container: Object) -> Assets:
    """The programs of the release of Kubernetes that the image is of."""
    version = text(container.get("image")).rpartition(":")[2]
    wanted = release(version)
    return find_or_build(None if wanted == NEWEST else wanted)


# --- etcd


def etcd(*, data: Path, certificates: Path, peers: int, clients: int, metrics: int) -> list[str]:
    """Args: certificates: a directory with server/tls.crt, server/tls.key and ca/bundle.crt."""
    client, peer = f"https://{HOST}:{clients}", f"http://{HOST}:{peers}"
    return [
        str(find_or_build().etcd),
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
        # What a crash of the whole computer loses is not worth waiting for the disk at every write.
        "--unsafe-no-fsync",
        "--auto-compaction-retention=30m",
        "--log-level=warn",
    ]
