"""CertificateSigningRequests of real users with real keys, decided at an API server that is for these tests alone.

A program that decides on requests decides on those of the whole cluster, so each test process has a cluster of its own here.
"""

import base64
import contextlib
import ssl
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.resource_manager.csr_approver.controller import declare
from config.resource_manager.controllers import Controllers, CSRApprover
from devcluster.cluster import Cluster
from devcluster.testing.faults import EndWatch, LateEvents, Rule, WatchEnd, internal_error
from gardener.api.kinds import MACHINES
from kit.controllers import counted, run_controller
from kit.eventually import soon
from kit.kinds import serve
from kit.managed_resources import install_crd
from kit.objects import obj
from kit.processes.agent import AgentProcess, configuration
from kit.proxied import proxied
from kit.signing.requests import (
    CLIENT,
    EXTENSIONS,
    MICROSOFT_EXTENSIONS,
    SERVING,
    attribute,
    csr_object,
    dns_extensions,
    hand_made,
    pem,
    signing_request,
)
from kit.world import Place, connected
from kube.objects import Object, condition
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, NODES
from kube.runtime.loop import ControlLoop

NAMESPACE = "default"
AGENT = "gardener.cloud:node-agent:machine:"
BOOTSTRAP = "system:bootstrap:abcdef"
ANY = ("system:nodes", "system:masters")
"""Groups that let anybody ask."""


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def machines(own_cluster: Cluster) -> None:
    """Makes the API server serve Machines."""
    serve(own_cluster, MACHINES)


class SigningPlace(Place):
    """Nodes, Machines, and requests of users."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, NAMESPACE)
        self.name = f"n-{uuid.uuid4().hex[:8]}"
        """Of the Node that the test is about, if it makes one."""
        self.user = f"system:node:{self.name}"

    def node(self, *addresses: tuple[str, str]) -> None:
        self.create(obj(NODES, self.name))
        self.addresses(*addresses)

    def addresses(self, *addresses: tuple[str, str]) -> None:
        listed = [{"type": kind, "address": address} for kind, address in addresses]
        self.patch("Node", self.name, {"status": {"addresses": listed}}, subresource="status")

    def plain_node(self) -> None:
        """A Node for which `ask_for_node` is right."""
        self.node(("Hostname", self.name), ("InternalIP", "10.1.2.3"))

    def machine(self, *, node: str = "") -> str:
        name = f"m-{uuid.uuid4().hex[:8]}"
        self.create(obj(MACHINES, name, labels={"node": node} if node else {}))
        return name

    async def ask(
        self,
        user: str,
        body: bytes,
        *,
        groups: Sequence[str] = ("system:nodes",),
        signer: str = SERVING,
        usages: Sequence[str] = ("digital signature", "server auth"),
    ) -> str:
        """Creates a request with the client certificate of that user; returns its name."""
        csr = csr_object(body, name=f"csr-{uuid.uuid4().hex[:10]}", signer=signer, usages=usages)
        del csr["metadata"]["creationTimestamp"]
        kubeconfig = self.cluster.kubeconfig_for(user, groups)
        async with connected(kubeconfig, "kubelet") as kubelet:
            created = await kubelet.create(CERTIFICATE_SIGNING_REQUESTS, csr)
        assert created["spec"]["username"] == user
        return str(created["metadata"]["name"])

    async def ask_for_node(self, *, user: str = "", common_name: str = "", **options: Any) -> str:
        """What the kubelet of the Node would ask for, or nearly."""
        wanted: dict[str, Any] = {"dns": [self.name], "ips": ["10.1.2.3"]}
        wanted |= {field: options.pop(field) for field in ("dns", "ips", "organizations", "others") if field in options}
        user = user or self.user
        return await self.ask(user, signing_request(common_name or user, **wanted), **options)

    async def ask_for_agent(self, user: str, machine: str, **wanted: Any) -> str:
        """What the node agent of the Machine would ask for, or nearly."""
        body = signing_request(f"{AGENT}{machine}", **{"organizations": ["gardener.cloud:node-agents"], **wanted})
        usages = ["digital signature", "key encipherment", "client auth"]
        return await self.ask(user, body, groups=["system:masters"], signer=CLIENT, usages=usages)

    def request(self, name: str) -> Object:
        return self.get(CERTIFICATE_SIGNING_REQUESTS, name)

    def decision(self, name: str) -> str:
        """Type and message of the decision; empty while there is none."""
        csr = self.request(name)
        found = condition(csr, "Approved") or condition(csr, "Denied")
        return f"{found['type']}: {found['message']}" if found else ""

    async def decided(self, name: str) -> str:
        await soon(lambda: self.decision(name))
        return self.decision(name)

    def decide(self, name: str, kind: str) -> None:
        """As another client."""
        csr = self.request(name)
        csr["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "Somebody", "message": "else"}]}
        self.api.update(self.path(CERTIFICATE_SIGNING_REQUESTS, name, subresource="approval"), csr)


@pytest.fixture
def world(own_cluster: Cluster, machines: None) -> SigningPlace:
    return SigningPlace(own_cluster)


@asynccontextmanager
async def approver(
    kubeconfig: Path, *, source: Path | None = None, workers: int = 2, **settings: Any
) -> AsyncIterator[ControlLoop]:
    """The controller at work."""
    controllers = Controllers(csr_approver=CSRApprover(enabled=True, concurrent_syncs=workers, **settings))
    async with (
        connected(kubeconfig, "csr-approver-test") as client,
        connected(source or kubeconfig, "csr-approver-test") as source_client,
        run_controller(declare, client, controllers=controllers, source=source_client) as loop,
    ):
        yield loop


APPROVED = "Approved: Approving kubelet server certificate CSR (all checks passed)"


def denied(reason: str) -> str:
    return f"Denied: Denying kubelet server certificate CSR ({reason}"


async def test_a_kubelet_gets_its_certificate_and_serves_with_it(world: SigningPlace, tmp_path: Path) -> None:
    """The client trusts the cluster's CA, and nothing else."""
    world.node(("Hostname", "localhost"), ("InternalIP", "127.0.0.1"), ("InternalIP", "::1"))
    world.machine(node=world.name)
    own_key = ec.generate_private_key(ec.SECP256R1())
    body = signing_request(world.user, dns=["localhost"], ips=["127.0.0.1", "::1"], private_key=own_key)
    install_crd(world.cluster)
    controllers = {"csrApprover": {"enabled": True, "machineNamespace": NAMESPACE}}
    with AgentProcess(configuration(NAMESPACE, controllers=controllers), kubeconfig=world.cluster.kubeconfig) as agent:
        agent.wait_until_leading()
        name = await world.ask(world.user, body)
        assert await world.decided(name) == APPROVED
        await soon(lambda: world.request(name)["status"].get("certificate"))
    certificate = base64.b64decode(world.request(name)["status"]["certificate"])
    assert x509.load_pem_x509_certificate(certificate).public_key() == own_key.public_key()
    private = own_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pair = tmp_path / "pair.pem"
    pair.write_bytes(certificate + private)
    for host in ("localhost", "127.0.0.1"):
        assert _shake_hands(pair, ca=world.cluster.ca, host=host) == {"TLSv1.3"}


def _shake_hands(pair: Path, *, ca: str, host: str) -> set[str | None]:
    """The versions that a server with the certificate and a client that requests the host agree on, in memory.

    Raises:
        ssl.SSLError: the client does not accept the certificate.
    """
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    client = ssl.create_default_context(cadata=ca).wrap_bio(to_client, to_server, server_hostname=host)
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return {client.version(), server.version()}


async def test_requests_of_nodes_are_decided_by_what_the_node_is(world: SigningPlace) -> None:
    world.node(
        ("Hostname", world.name),
        ("InternalDNS", "n.int"),
        ("InternalIP", "10.1.2.3"),
        ("ExternalIP", "2001:DB8:0:0::1"),
    )
    everything: dict[str, Any] = {"dns": ["n.int", world.name], "ips": ["2001:db8::1", "10.1.2.3"]}
    async with approver(world.cluster.kubeconfig, machine_namespace=NAMESPACE):
        lone = await world.ask_for_node(**everything)
        assert await world.decided(lone) == denied(
            f'Expected exactly one machine in namespace "default" for node "{world.name}" but found 0)'
        )
        world.machine(node=world.name)
        right = await world.ask_for_node(**everything)
        assert await world.decided(right) == APPROVED
        narrow = await world.ask_for_node()
        assert (await world.decided(narrow)).startswith(denied("DNS names in CSR do not match"))
        v4 = await world.ask_for_node(**{**everything, "ips": ["10.1.2.3"]})
        assert (await world.decided(v4)).endswith("only in CSR [], only in node [2001:db8::1])")
        world.machine(node=world.name)
        assert "but found 2" in await world.decided(await world.ask_for_node(**everything))
    assert not world.request(narrow)["status"].get("certificate")


def _ambiguous(user: str, *, good: str, other: str) -> bytes:
    """A request that the API server takes, in which different parsers find different names."""
    subject = [("2.5.4.10", 0x0C, b"system:nodes"), ("2.5.4.3", 0x0C, user.encode())]
    lists = {MICROSOFT_EXTENSIONS: dns_extensions(good), EXTENSIONS: dns_extensions(other)}
    return pem(hand_made(subject, *(attribute(kind, extensions) for kind, extensions in lists.items())))


async def test_what_is_hostile_is_never_approved(world: SigningPlace) -> None:
    """All at once, while a good one is approved among them."""
    world.plain_node()
    victim, name = SigningPlace(world.cluster), world.name
    victim.plain_node()
    mail = x509.RFC822Name("root@example.com")
    async with approver(world.cluster.kubeconfig, workers=4):
        good = await world.ask_for_node()
        hostile = [
            await world.ask_for_node(user="mallory", groups=ANY),
            await world.ask_for_node(user="mallory", groups=ANY, common_name=world.user),
            await world.ask_for_node(common_name=victim.user),
            await world.ask_for_node(user=victim.user),
            await victim.ask_for_node(user=world.user, common_name=victim.user),
            await world.ask_for_node(dns=[name, "kubernetes.default.svc"]),
            await world.ask_for_node(dns=[victim.name]),
            await world.ask_for_node(ips=["10.1.2.3", "10.96.0.1"]),
            await world.ask_for_node(dns=[], ips=[]),
            await world.ask_for_node(organizations=["system:nodes", "system:masters"]),
            await world.ask_for_node(organizations=["system:masters"]),
            await world.ask_for_node(organizations=[]),
            await world.ask_for_node(user="system:node:", common_name="system:node:", groups=ANY),
            await world.ask_for_node(user="system:node:..", common_name="system:node:..", groups=ANY),
            await world.ask_for_node(
                user=f"system:node:{name}/status", common_name=f"system:node:{name}/status", groups=ANY
            ),
            await world.ask_for_node(usages=["digital signature", "server auth", "client auth"]),
            await world.ask_for_node(others=[mail]),
            await world.ask_for_node(groups=["system:masters"]),
            await world.ask(world.user, _ambiguous(world.user, good=name, other="kubernetes.default.svc")),
        ]
        undisturbed = [
            await world.ask_for_node(signer="example.com/mine"),
            await world.ask_for_node(signer=CLIENT),
            await world.ask_for_node(
                signer="kubernetes.io/kube-apiserver-client-kubelet", usages=["digital signature", "client auth"]
            ),
        ]
        assert await world.decided(good) == APPROVED
        for request in hostile:
            assert (await world.decided(request)).startswith("Denied: "), world.request(request)
        # The controller that approves kubelets' client certificates is at work too; it is none of ours.
        for request in undisturbed:
            assert "kubelet server certificate" not in world.decision(request)
            assert "gardener-node-agent" not in world.decision(request)


async def test_client_certificates_of_node_agents(world: SigningPlace) -> None:
    new, present = world.machine(), world.machine(node=world.name)
    world.plain_node()

    async def ask(user: str, machine: str) -> str:
        return await world.decided(await world.ask_for_agent(user, machine))

    approved = "Approved: Approving gardener-node-agent certificate CSR (all checks passed)"
    async with approver(world.cluster.kubeconfig, machine_namespace=NAMESPACE):
        assert await ask(BOOTSTRAP, new) == approved
        assert await ask(f"{AGENT}{present}", present) == approved
        assert "is already bootstrapped" in await ask(BOOTSTRAP, present)
        assert "do not match" in await ask(f"{AGENT}{new}", present)
        assert 'machine "unknown" does not exist' in await ask(f"{AGENT}unknown", "unknown")
        assert "does not exist" in await ask(f"{AGENT}x,y", "x,y")
        assert "is not allowed" in await ask("mallory", new)


async def test_a_node_agent_gets_no_group_but_its_own(world: SigningPlace) -> None:
    """What the signer would put into the certificate, the API server would believe."""
    machine, own = world.machine(), "gardener.cloud:node-agents"
    async with approver(world.cluster.kubeconfig, machine_namespace=NAMESPACE):
        hostile = await world.ask_for_agent(BOOTSTRAP, machine, organizations=[own, "acme:oncall-admins"])
        assert await world.decided(hostile) == (
            "Denied: Denying gardener-node-agent certificate CSR (organization in CSR does not match node agents group:"
            f' only "{own}" is allowed, found ["acme:oncall-admins" "{own}"])'
        )
        for more in ({"dns": ["kubernetes"]}, {"subject": [x509.NameAttribute(NameOID.USER_ID, "0")]}):
            refused = await world.decided(await world.ask_for_agent(BOOTSTRAP, machine, **more))
            assert refused.startswith("Denied: ")
        honest = await world.ask_for_agent(BOOTSTRAP, machine)
        await soon(lambda: world.request(honest)["status"].get("certificate"))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(world.request(honest)["status"]["certificate"]))
    assert {each.value for each in certificate.subject} == {own, f"{AGENT}{machine}"}
    assert not world.request(hostile)["status"].get("certificate")


async def test_a_decision_is_reported_in_an_event_and_counted(world: SigningPlace) -> None:
    world.plain_node()
    before = counted("csr_approver_decisions_total", signer=SERVING, reason="dns-names")
    async with approver(world.cluster.kubeconfig):
        name = await world.ask_for_node(dns=["other"])
        message = (await world.decided(name)).removeprefix("Denied: ")
        [event] = await soon(lambda: [e for e in world.list("Event") if e["involvedObject"]["name"] == name])
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "RequestDenied", message)
    assert event["source"]["component"] == "csr-approver"
    assert counted("csr_approver_decisions_total", signer=SERVING, reason="dns-names") > before


async def test_requests_from_before_the_start_are_decided(world: SigningPlace) -> None:
    world.plain_node()
    name = await world.ask_for_node()
    async with approver(world.cluster.kubeconfig):
        assert await world.decided(name) == APPROVED


async def test_in_the_grace_period_the_cluster_may_come_right(world: SigningPlace) -> None:
    async with approver(world.cluster.kubeconfig, denial_grace_period=600.0):
        late = await world.ask_for_node()
        hopeless = await world.ask_for_node(organizations=["system:masters"])
        assert (await world.decided(hopeless)).startswith("Denied: ")
        assert world.decision(late) == ""
        world.plain_node()
        assert await world.decided(late) == APPROVED


async def test_what_others_decided_is_not_overruled_by_an_old_memory(world: SigningPlace, tmp_path: Path) -> None:
    """It knows the request as it was before a decision, and its watch is silent."""
    world.plain_node()
    name = await world.ask_for_node()
    async with proxied(world.cluster, tmp_path) as (proxy, _):
        proxy.rules.add(
            Rule(fault=EndWatch(how=WatchEnd.SILENT), path="/certificatesigningrequests$"),
            Rule(fault=internal_error(), path="/nodes/"),
        )
        async with approver(tmp_path / "kubeconfig"):
            await soon(lambda: proxy.injected["internal-error"] and proxy.injected["watch-silent"])
            world.decide(name, "Denied")
            proxy.rules.clear()
            await soon(lambda: any(e.status == 409 and e.request.path.endswith(f"{name}/approval") for e in proxy.log))
    assert [c["type"] for c in world.request(name)["status"]["conditions"]] == ["Denied"]
    assert world.decision(name) == "Denied: else"


async def test_addresses_and_machines_are_those_of_now(world: SigningPlace, tmp_path: Path) -> None:
    """Whatever a watch would bring late: a Node that was renumbered gets its new addresses, and not the old ones."""
    world.plain_node()
    async with proxied(world.cluster, tmp_path) as (proxy, _):
        proxy.rules.add(Rule(fault=LateEvents(seconds=60.0), path="/(nodes|machines)$"))
        async with approver(tmp_path / "kubeconfig", machine_namespace=NAMESPACE):
            world.machine(node=world.name)
            assert await world.decided(await world.ask_for_node()) == APPROVED
            world.addresses(("Hostname", world.name), ("InternalIP", "10.9.9.9"))
            assert (await world.decided(await world.ask_for_node())).startswith(denied("IP addresses in CSR"))
            assert await world.decided(await world.ask_for_node(ips=["10.9.9.9"])) == APPROVED
            world.delete("Node", world.name)
            gone = await world.ask_for_node(ips=["10.9.9.9"])
            assert await world.decided(gone) == denied(f'could not find node object with name "{world.name}")')


async def test_nothing_is_decided_while_machines_can_not_be_read(world: SigningPlace, tmp_path: Path) -> None:
    world.plain_node()
    world.machine(node=world.name)
    async with proxied(world.cluster, tmp_path) as (proxy, _):
        proxy.rules.add(Rule(fault=internal_error(), path="/machines$"))
        async with approver(tmp_path / "kubeconfig", machine_namespace=NAMESPACE):
            name = await world.ask_for_node()
            await soon(lambda: proxy.injected["internal-error"] >= 2)
            assert world.decision(name) == ""
            proxy.rules.clear()
            assert await world.decided(name) == APPROVED


async def test_a_source_without_machines_decides_nothing(world: SigningPlace, target_cluster: Cluster) -> None:
    """A missing kind is no missing Machine."""
    world.plain_node()
    with structlog.testing.capture_logs() as logged:
        async with approver(world.cluster.kubeconfig, source=target_cluster.kubeconfig, machine_namespace=NAMESPACE):
            name = await world.ask_for_node()
            await soon(lambda: any("failed when checking" in str(entry.get("error")) for entry in logged))
            assert world.decision(name) == ""
    reported = [entry for entry in logged if "does not serve Machines" in entry["event"]]
    assert [entry["namespace"] for entry in reported] == [NAMESPACE]


async def test_a_decision_costs_one_question_of_each_kind(world: SigningPlace) -> None:
    world.plain_node()
    world.machine(node=world.name)
    with contextlib.closing(world.cluster.audit()) as audit:
        async with approver(world.cluster.kubeconfig, machine_namespace=NAMESPACE):
            assert await world.decided(await world.ask_for_node()) == APPROVED
        calls = audit.calls(user_agent="csr-approver-test")
    about_node = sorted((call.verb, call.resource) for call in calls if world.name in call.uri)
    assert about_node == [("get", "nodes"), ("list", "machines")]
