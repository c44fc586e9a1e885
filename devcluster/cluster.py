"""A cluster: starts the components in order, waits until they are ready, and provides access.

A `Cluster` object is a view of a state directory (localprocesses.state). The process that starts it decides how long it
lives: as long as an owner process (the default: this one), or until `stop`. Others find it with `Cluster.running`.
"""

import asyncio
import http.client
import itertools
import json
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from devcluster.api import Api
from devcluster.audit import Audit
from kube.errors import AlreadyExists, KubeError
from kube.objects import Object, condition, key
from kube.x509 import make_rsa_key, make_signing_key
from localprocesses import components, supervisor
from localprocesses.assets import Assets, find_or_build
from localprocesses.components import (
    ADMINISTRATORS,
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    Files,
    Shape,
)
from localprocesses.ended import is_final
from localprocesses.local import LocalProcessError, wait_until
from localprocesses.pki import (
    Authority,
    CertificateFiles,
    client_certificate,
    kubeconfig,
    token_credentials,
    write_private,
)
from localprocesses.state import directory, is_alive, locked, names_below, start_lock, sweep

_START_SECONDS, _END_SECONDS = 900.0, 120.0
"""Maximum seconds on a busy machine; on an idle one 4 and 1."""
_ETCD_SECONDS = 20.0
_RSA_BITS = 2048
_numbers = itertools.count(1)


class Cluster:
    """A control plane. Blocking; in a coroutine use `async with`, and asyncio.to_thread for the methods that wait."""

    def __init__(
        self,
        *,
        name: str | None = None,
        nodes: int = 0,
        owner: int | None = None,
        release: str | None = None,
        shape: Shape | None = None,
    ) -> None:
        """`owner` is the id of the process whose end also ends the cluster: this one by default, 0 for none.

        `release` is that of Kubernetes, as `1.30.14`; by default that of `find_or_build`. A cluster whose name has a
        dot ends with the one that the part before the dot names. Without an owner, components that end are restarted.
        """
        self.name = name or f"{os.getpid()}-{next(_numbers)}"
        self.state = directory(self.name)
        self._nodes = nodes
        self._owner = os.getpid() if owner is None else owner
        self._kept = owner == 0
        self._release = release
        self._shape = shape or Shape()
        self._files = Files(self.state)

    @classmethod
    def running(cls, name: str) -> "Cluster | None":
        """Return the cluster of this name, if one was started completely and is alive."""
        cluster = cls(name=name, owner=0)
        return cluster if cluster.is_running() else None

    def below(self, name: str, *, nodes: int = 0, shape: Shape | None = None) -> "Cluster":
        """Return another cluster, which ends with this one."""
        found = Cluster(name=f"{self.name}.{name}", nodes=nodes, owner=self._owner, release=self._release, shape=shape)
        if found._kept:
            found._owner = supervisor.ask(self.state, "status")["pid"]
        return found

    # --- access

    @property
    def url(self) -> str:
        return self._access["url"]

    @property
    def token(self) -> str:
        """Bearer token of an administrator, also valid through a proxy that ends TLS."""
        return self._access["token"]

    @property
    def ca(self) -> str:
        """Authority of the API server's certificate, PEM."""
        return self._files.ca.read_text()

    @property
    def webhook_clients(self) -> Object:
        """Settings of a server of webhooks, which restrict its clients to the API server."""
        return {"clientCAFile": str(self._files.ca), "clientNames": [components.WEBHOOK_CLIENT]}

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator, with the token."""
        return self._files.kubeconfig

    @property
    def audit_log(self) -> Path:
        return self._files.audit_log

    @cached_property
    def authority(self) -> Authority:
        """Authority for further certificates that the API server and its clients trust."""
        return Authority.load(CertificateFiles(self._files.ca, self._files.pki / "ca.key"))

    @cached_property
    def api(self) -> Api:
        return Api(url=self.url, ca=self.ca, token=self.token)

    def audit(self) -> Audit:
        """Return the calls to the API server from now on; to be closed."""
        return Audit(self.audit_log, self.api)

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """Return a kubeconfig with a client certificate for this user, whose rights come from RBAC."""
        path = self.state / f"user-{secrets.token_hex(4)}.kubeconfig"
        self._write_kubeconfig(path, client_certificate(self.authority.issue_client(user, groups)), self.url)
        return path

    def kubeconfig_through(self, url: str) -> Path:
        """Return the administrator's kubeconfig for another address of the API server, as that of a proxy."""
        path = self.state / f"through-{secrets.token_hex(4)}.kubeconfig"
        self._write_kubeconfig(path, token_credentials(self.token), url)
        return path

    def front_proxy_certificate(self) -> Path:
        """Return a directory with a certificate by which the API server believes headers that name users."""
        path = self.state / components.FRONT_PROXY
        path.mkdir(mode=0o700, exist_ok=True)
        for kind in ("crt", "key"):
            write_private(path / f"tls.{kind}", (self._files.pki / f"{components.FRONT_PROXY}.{kind}").read_bytes())
        return path

    def authorize_by(self, url: str, ca: str) -> None:
        """Authorize gardenlets by a webhook from now on; the API server reloads its file soon.

        Raises:
            LocalProcessError: this version of Kubernetes does not support it.
        """
        files, api = self._files, self._assets.authorization_api()
        if not api or not files.authorization.exists():
            raise LocalProcessError("an authorization webhook needs Kubernetes 1.30 or newer")
        shown = client_certificate(self.authority.issue_client(components.WEBHOOK_CLIENT))
        # Under a new name: only a change of the file that names it is noticed.
        path = self.state / f"authorizer-{secrets.token_hex(4)}.kubeconfig"
        write_private(path, kubeconfig(name="seeds", url=url, ca=ca, user=shown).encode())
        # In one step: it is watched.
        written = files.authorization.with_suffix(".new")
        written.write_text(components.authorization_configuration(api=api, webhook_kubeconfig=path))
        written.replace(files.authorization)

    # --- life

    def start(self) -> Self:
        """Start the cluster, or components that have ended; return when API server, controllers and nodes are ready.

        Raises:
            LocalProcessError: it does not come up; then no process is left running.
        """
        self._assets = find_or_build(self._release)  # may take minutes, so before any lock is held
        sweep()
        with locked(start_lock(self.state)):
            if self.is_running():
                self._run_components()
                return self
            self._remove_remains()
            try:
                self._start()
            except BaseException:
                self._remove_remains()
                start_lock(self.state).unlink(missing_ok=True)
                raise
        return self

    def stop(self) -> None:
        """End all processes and remove the state, first of the clusters below; does nothing if none runs."""
        with locked(start_lock(self.state)):
            self._remove_remains()
            start_lock(self.state).unlink(missing_ok=True)

    def is_running(self) -> bool:
        return is_alive(self.state) and self._files.ready.exists()

    def component_states(self) -> dict[str, dict[str, Any]]:
        """Return `pid` and `exit` of each component; `exit` is None while it runs, then its exit code."""
        found: dict[str, dict[str, Any]] = supervisor.ask(self.state, "status")["components"]
        return found

    def start_apiserver(self) -> None:
        """Start it again at the same address; return when it is ready."""
        self._run(APISERVER, self._apiserver())
        self._wait_for("the API server to be ready", self.is_ready)

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Stop it; its port refuses connections until the next start. With `kill`, it can't shut down gracefully."""
        supervisor.ask(self.state, "stop", name=APISERVER, kill=kill)

    def start_etcd(self) -> None:
        """Start it again with the same data; return when the API server works with it."""
        self._run(ETCD, components.etcd(self._assets, self._files))
        self._wait_for("the API server to reach etcd", self._is_stored)

    def stop_controllers(self) -> None:
        """End the controller manager and the scheduler; from now on their work is not done."""
        for name in (CONTROLLER_MANAGER, SCHEDULER):
            supervisor.ask(self.state, "stop", name=name, kill=True)

    def stop_etcd(self, *, kill: bool = False) -> None:
        """Stop etcd; the API server keeps running and answers some reads from its cache, others with errors."""
        supervisor.ask(self.state, "stop", name=ETCD, kill=kill)

    def compact(self) -> int:
        """Compact etcd to the present revision, and return that. Needs etcd 3.6."""
        with socket.socket(socket.AF_UNIX) as connected:
            connected.settimeout(_ETCD_SECONDS)
            connected.connect(str(self._files.etcd_socket))
            etcd = http.client.HTTPConnection("etcd")
            etcd.sock = connected
            revision = int(_requested(etcd, "/v3/kv/range", {"key": "AA=="})["header"]["revision"])
            _requested(etcd, "/v3/kv/compaction", {"revision": revision, "physical": True})
        return revision

    def snapshot(self) -> Path:
        """Copy the data of etcd, to be passed to `restore`. Etcd is down for a moment meanwhile."""
        copy = self.state / f"snapshot-{secrets.token_hex(4)}"
        self.stop_etcd(kill=True)
        shutil.copytree(self._files.etcd_data, copy)
        self.start_etcd()
        return copy

    def restore(self, snapshot: Path) -> None:
        """Take the cluster back to the snapshot, resourceVersions included; return when it is ready.

        All components of the control plane are restarted, as the documentation of Kubernetes demands.
        """
        for component in reversed(components.ORDER):
            if component in self.component_states():
                supervisor.ask(self.state, "stop", name=component, kill=True)
        shutil.rmtree(self._files.etcd_data)
        shutil.copytree(snapshot, self._files.etcd_data)
        self._run_components()

    def add_nodes(self, count: int) -> None:
        """Ensure that the nodes 0 to `count`-1 exist and are ready."""
        if count and not self._assets.kwok:
            raise LocalProcessError("nodes need the program kwok; KUBEBUILDER_ASSETS names a directory without it")
        for index in range(count):
            try:
                self.api.create("/api/v1/nodes", components.node(index))
            except AlreadyExists:
                continue
        names = {f"node-{index}" for index in range(count)}
        self._wait_for(f"{count} nodes to be ready", lambda: names <= self._ready_nodes())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    # --- start

    def _start(self) -> None:
        self._files.logs.mkdir(parents=True, mode=0o700)
        # While it starts, it is owned by this process: if that is killed now, nothing is left.
        supervisor.launch(self.state, owner=os.getpid())
        self._write_files()
        self._run_components()
        supervisor.ask(self.state, "own", owner=self._owner, keep=self._kept)
        self._files.ready.touch()

    def _run_components(self) -> None:
        assets, files = self._assets, self._files
        self._run(ETCD, components.etcd(assets, files))
        self.start_apiserver()
        if assets.controller_manager:
            command = components.controller_manager(assets.controller_manager, files, played=self._shape.played)
            self._run(CONTROLLER_MANAGER, command)
        if assets.scheduler and self._shape.scheduled:
            self._run(SCHEDULER, components.scheduler(assets.scheduler, files))
        if assets.kwok:
            self._run(KWOK, components.kwok(assets.kwok, files.component_kubeconfig(KWOK)))
        self.add_nodes(self._nodes)
        if assets.controller_manager:
            self._wait_for("the controllers to work", self._controllers_work)

    def _write_files(self) -> None:
        files = self._files
        files.pki.mkdir()
        # An API server verifies the certificate of a client in each request: with an RSA key at half the CPU.
        authority = Authority.create("devcluster", key=make_rsa_key(_RSA_BITS))
        authority.key_pair().write(files.pki, "ca")
        authority.issue_server(self._shape.serving_names).write(files.pki, "apiserver")
        write_private(files.service_account_key, make_signing_key())
        front_proxies = Authority.create("front proxies of devcluster")
        files.front_proxy_ca.write_bytes(front_proxies.bundle)
        front_proxies.issue_client(components.FRONT_PROXY).write(files.pki, components.FRONT_PROXY)
        files.audit_policy.write_text(components.AUDIT_POLICY)
        files.admission.write_text(components.admission_configuration(files))
        if api := self._assets.authorization_api():
            files.authorization.write_text(components.authorization_configuration(api=api))
        shown = client_certificate(authority.issue_client(components.WEBHOOK_CLIENT))
        write_private(files.webhooks_kubeconfig, components.webhooks_kubeconfig(shown).encode())

        access = {"url": f"https://127.0.0.1:{self._port}", "token": secrets.token_urlsafe(32)}
        write_private(files.access, json.dumps(access).encode())
        tokens = [f"{access['token']},devcluster-admin,devcluster-admin,{ADMINISTRATORS}"]
        self._write_kubeconfig(files.kubeconfig, token_credentials(access["token"]), self.url)
        for component, user in components.COMPONENT_USERS.items():
            token = secrets.token_urlsafe(32)
            tokens.append(f"{token},{user},{user},{ADMINISTRATORS}")
            self._write_kubeconfig(files.component_kubeconfig(component), token_credentials(token), self.url)
        write_private(files.tokens, "\n".join(tokens).encode())

    def _write_kubeconfig(self, path: Path, user: Object, url: str) -> None:
        write_private(path, kubeconfig(name=f"devcluster-{self.name}", url=url, ca=self.ca, user=user).encode())

    def _remove_remains(self) -> None:
        for name in names_below(self.name):
            Cluster(name=name).stop()
        if is_alive(self.state):
            with suppress(LocalProcessError):  # it is stopping, and accepts no requests any more
                supervisor.ask(self.state, "shutdown")
            what = f"the supervisor of {self.state} to end"
            wait_until(lambda: not is_alive(self.state), what=what, within=_END_SECONDS)
        shutil.rmtree(self.state, ignore_errors=True)

    def _apiserver(self) -> list[str]:
        return components.apiserver(self._assets, self._files, port=self._port, services=self._shape.services)

    def _run(self, component: str, command: list[str]) -> None:
        """Start a component, unless it runs."""
        if component in (states := self.component_states()) and states[component]["exit"] is None:
            return
        supervisor.ask(self.state, "start", name=component, command=command)

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        def holds_by_now() -> bool:
            self._check_components()
            try:
                return holds()
            except KubeError:
                return False

        wait_until(holds_by_now, what=what, within=_START_SECONDS)

    def _check_components(self) -> None:
        for name, component in self.component_states().items():
            if name in components.ORDER and is_final(component):
                log = self._files.log(name)
                end = "\n  ".join(log.read_text(errors="replace").splitlines()[-10:])
                raise LocalProcessError(f"{name} ended with {component['exit']}; the end of its log:\n  {end}")

    def is_ready(self) -> bool:
        """Whether the API server is ready."""
        try:
            return self.api.raw("GET", "/readyz")[0] == 200
        except KubeError:
            return False

    def _is_stored(self) -> bool:
        """Whether a read from etcd succeeds, unlike readiness, which is answered from memory for a while."""
        self.api.get("/api/v1/namespaces/default")
        return True

    def _ready_nodes(self) -> set[str]:
        nodes = self.api.get("/api/v1/nodes")["items"]
        return {key(node).name for node in nodes if _can_take_pods(node)}

    def _controllers_work(self) -> bool:
        """Whether namespaces have their ServiceAccount, without which no pod can be created."""
        self.api.get("/api/v1/namespaces/default/serviceaccounts/default")
        return True

    @cached_property
    def _access(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads(self._files.access.read_text())
        except FileNotFoundError:
            raise LocalProcessError(f"the cluster {self.name!r} does not run") from None
        return found

    @cached_property
    def _port(self) -> int:
        return int(supervisor.ask(self.state, "status")["port"])

    @cached_property
    def _assets(self) -> Assets:
        return find_or_build(self._release)


def _can_take_pods(node: Object) -> bool:
    ready = condition(node, "Ready")
    return bool(ready and ready["status"] == "True" and not node["spec"].get("taints"))


def _requested(etcd: http.client.HTTPConnection, path: str, question: Object) -> Object:
    etcd.request("POST", path, json.dumps(question))
    response = etcd.getresponse()
    answer: Object = json.loads(response.read())
    if response.status != 200:
        raise LocalProcessError(f"etcd answers {path} with {response.status}: {answer}")
    return answer
