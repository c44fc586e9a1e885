"""Whatever is asked for, nothing breaks, and nothing is approved that a second, simpler set of rules refuses.

Requests are drawn near what is right: most of them are wrong in one or two points only. The oracle does not look at the
bytes that were parsed, but at what the request was made from.
"""

import asyncio
import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from signing_requests import CLIENT, SERVING, csr_object, hand_made, node_object, pem, signing_request

from agent.csr_approver.client_certificates import Machine
from agent.csr_approver.decide import decide
from agent.csr_approver.decisions import Approval, NoOpinion
from agent.csr_approver.kubelet_serving import Rules
from kube.objects import Object

AGENT = "gardener.cloud:node-agent:machine:"
GARDENADM = "gardener.cloud:gardenadm:shoot:"
PREFIXES = ("system:node:", AGENT, GARDENADM, "system:bootstrap:", "system:", "")
NAMES = st.sampled_from(["a", "b", "A", "", "a.b", "c"])
IPS = st.sampled_from(["10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1", "2001:DB8:0::1"])
IDENTITIES = st.builds("".join, st.tuples(st.sampled_from(PREFIXES), NAMES))
GROUPS = st.sampled_from(["system:nodes", "system:masters", "gardener.cloud:system:shoots"])
ADDRESS_TYPES = st.sampled_from(["Hostname", "InternalDNS", "InternalIP", "ExternalIP", "Other"])


@dataclass(frozen=True, slots=True)
class World:
    nodes: Mapping[str, list[tuple[str, str]]]
    """Types and texts of the addresses of each Node."""
    machines: Mapping[str, str]
    machine_namespace: str | None

    async def node(self, name: str) -> Object | None:
        addresses: dict[str, list[str]] = {}
        for kind, address in self.nodes.get(name, ()):
            addresses.setdefault(kind, []).append(address)
        return node_object(name, **addresses) if name in self.nodes else None

    async def machines_of_node(self, node_name: str) -> int | None:
        return None if self.machine_namespace is None else list(self.machines.values()).count(node_name)

    async def machine(self, name: str) -> Machine | None:
        if self.machine_namespace is None:
            return Machine(name)
        return Machine(self.machines[name]) if name in self.machines else None


@dataclass(frozen=True, slots=True)
class Drawn:
    user: str
    common_names: list[str]
    organizations: list[str]
    dns: list[str]
    ips: list[str]
    signer: str


def address(kind: str) -> st.SearchStrategy[tuple[str, str]]:
    values = IPS if kind.endswith("IP") else st.sampled_from(["a", "b", "a.b"])
    return st.tuples(st.just(kind), values)


WORLDS = st.builds(
    World,
    nodes=st.dictionaries(NAMES.filter(bool), st.lists(ADDRESS_TYPES.flatmap(address), max_size=4), max_size=3),
    machines=st.dictionaries(NAMES.filter(bool), NAMES, max_size=3),
    machine_namespace=st.sampled_from([None, "machines"]),
)


@st.composite
def requests(draw: Any, world: World) -> Drawn:
    """Right in each point more often than not."""

    def usually(right: Any, otherwise: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(st.just(right), st.just(right), st.just(right), otherwise))

    user = draw(IDENTITIES)
    node = user.removeprefix("system:node:")
    known = world.nodes.get(node, [])
    is_client = draw(st.booleans()) if not user.startswith("system:node:") else False
    group = "gardener.cloud:system:shoots" if is_client else "system:nodes"
    right_name = draw(st.sampled_from([user or AGENT, f"{AGENT}a", GARDENADM])) if is_client else user or "nobody"
    return Drawn(
        user=user,
        common_names=usually([right_name], st.lists(IDENTITIES.filter(bool), max_size=2)),
        organizations=usually([group], st.lists(GROUPS, max_size=2)),
        dns=usually([text for kind, text in known if kind in {"Hostname", "InternalDNS"}], st.lists(NAMES, max_size=2)),
        ips=usually([text for kind, text in known if kind.endswith("IP")], st.lists(IPS, max_size=2)),
        signer=usually(CLIENT if is_client else SERVING, st.sampled_from([SERVING, CLIENT])),
    )


def may_be_approved(drawn: Drawn, world: World) -> bool:
    """The oracle."""
    name = drawn.common_names[0] if len(drawn.common_names) == 1 else None
    if name is None:
        return False
    if drawn.signer == SERVING:
        node = name.removeprefix("system:node:")
        addresses = world.nodes.get(node, [])
        hosts = {text for kind, text in addresses if kind in {"Hostname", "InternalDNS", "ExternalDNS"}}
        return (
            name == drawn.user == f"system:node:{node}"
            and drawn.organizations == ["system:nodes"]
            and (world.machine_namespace is None or sorted(world.machines.values()).count(node) == 1)
            and bool(drawn.dns or drawn.ips)
            and set(drawn.dns) == hosts
            and _numbers(drawn.ips) == _numbers(text for kind, text in addresses if kind.endswith("IP"))
        )
    if name.startswith(GARDENADM):
        return drawn.user.startswith("system:bootstrap:") and drawn.organizations == ["gardener.cloud:system:shoots"]
    if not name.startswith(AGENT):
        return False
    machine = name[len(AGENT) :]
    if world.machine_namespace is not None and machine not in world.machines:
        return False
    if drawn.user.startswith("system:bootstrap:"):
        return (world.machines[machine] if world.machine_namespace else machine) not in world.nodes
    return drawn.user == name


def _numbers(texts: Any) -> set[tuple[int, int]]:
    """Addresses as numbers; those of IPv4 within IPv6 as what they are."""
    found = set()
    for text in texts:
        ip = ipaddress.ip_address(text)
        number = int(ip)
        if ip.version == 6 and number >> 32 == 0xFFFF:
            found.add((4, number & 0xFFFFFFFF))
        else:
            found.add((ip.version, number))
    return found


@settings(max_examples=300, deadline=None)
@given(st.data(), WORLDS)
def test_exactly_what_the_rules_allow_is_approved(data: st.DataObject, world: World) -> None:
    drawn = data.draw(requests(world))
    body = signing_request(drawn.common_names, organizations=drawn.organizations, dns=drawn.dns, ips=drawn.ips)
    csr = csr_object(body, user=drawn.user, signer=drawn.signer)
    decision = asyncio.run(decide(csr, world, Rules()))
    assert isinstance(decision, Approval) == may_be_approved(drawn, world), (drawn, world, decision)


BODIES = [
    signing_request("system:node:a", dns=["a"], ips=["10.0.0.1"]),
    pem(hand_made([("2.5.4.3", 0x0C, b"system:node:a"), ("2.5.4.10", 0x0C, b"system:nodes")])),
]
PERFECT = World(
    nodes={"a": [("Hostname", "a"), ("InternalIP", "10.0.0.1")]}, machines={"m": "a"}, machine_namespace="machines"
)


@settings(max_examples=300, deadline=None)
@given(
    body=st.sampled_from(BODIES),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6),
    in_der=st.booleans(),
    signer=st.sampled_from([SERVING, CLIENT]),
    user=st.sampled_from(["system:node:b", "admin", "system:bootstrap:x", ""]),
)
def test_broken_bytes_are_never_approved_for_another_user_and_never_a_crash(
    body: bytes, changes: list[tuple[int, int]], in_der: bool, signer: str, user: str
) -> None:
    broken = bytearray(base64.b64decode(b"".join(body.splitlines()[1:-1])) if in_der else body)
    for place, value in changes:
        broken[place % len(broken)] = value
    csr = csr_object(pem(bytes(broken)) if in_der else bytes(broken), user=user, signer=signer)
    assert not isinstance(asyncio.run(decide(csr, PERFECT, Rules())), Approval)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: base64.b64encode(data).decode()))
def test_any_text_is_decided(request: str) -> None:
    for signer in (SERVING, CLIENT):
        csr = {"spec": {"request": request, "signerName": signer, "username": "system:node:a"}}
        decision = asyncio.run(decide(csr, PERFECT, Rules()))
        assert not isinstance(decision, Approval)
        assert signer == SERVING or decision == NoOpinion()
