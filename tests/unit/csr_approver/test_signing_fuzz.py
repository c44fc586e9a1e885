"""Whatever is requested, nothing breaks, and nothing is approved that a second, simpler set of rules refuses.

Requests are drawn near what is right: most of them are wrong in one or two points only. The oracle does not look at the
bytes that were parsed, but at what the request was made from.
"""

import asyncio
import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.resource_manager.csr_approver.rules import Approval, NoOpinion, Rules, decide
from fuzz import signing_request as fuzzing
from kit.signing import oracle
from kit.signing.cluster import KnownObjects
from kit.signing.requests import CLIENT, SERVING, csr_object, hand_made, node_object, pem, signing_request
from kube.objects import Object

AGENT = "gardener.cloud:node-agent:machine:"
GARDENADM = "gardener.cloud:gardenadm:shoot:"
PREFIXES = ("system:node:", AGENT, GARDENADM, "system:bootstrap:", "system:", "")
NAMES = st.sampled_from(["a", "b", "A", "", "a.b", "c"])
IPS = st.sampled_from(["10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1", "2001:DB8:0::1"])
IDENTITIES = st.builds("".join, st.tuples(st.sampled_from(PREFIXES), NAMES))
GROUPS = st.sampled_from(
    ["system:nodes", "system:masters", "gardener.cloud:system:shoots", "gardener.cloud:node-agents", "acme:admins"]
)
USAGES = st.sampled_from(["digital signature", "key encipherment", "server auth", "client auth", "cert sign"])
MORE: dict[str, dict[str, Any]] = {
    "": {},
    "URI": {"others": [x509.UniformResourceIdentifier("spiffe://a/b")]},
    "email": {"others": [x509.RFC822Name("a@b")]},
    "unit": {"subject": [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u")]},
    "constraints": {"extensions": [x509.BasicConstraints(ca=True, path_length=None)]},
}
"""What belongs in no certificate, by a word for it."""
ADDRESS_TYPES = st.sampled_from(["Hostname", "InternalDNS", "InternalIP", "ExternalIP", "Other"])


@dataclass(frozen=True, slots=True)
class Drawn:
    user: str
    common_names: list[str]
    organizations: list[str]
    dns: list[str]
    ips: list[str]
    more: str
    """One of `MORE`."""
    usages: list[str]
    signer: str


def address(kind: str) -> st.SearchStrategy[tuple[str, str]]:
    values = IPS if kind.endswith("IP") else st.sampled_from(["a", "b", "a.b"])
    return st.tuples(st.just(kind), values)


def node_of(name: str, found: Iterable[tuple[str, str]]) -> Object:
    addresses: dict[str, list[str]] = {}
    for kind, text in found:
        addresses.setdefault(kind, []).append(text)
    return node_object(name, **addresses)


def addresses_of(world: KnownObjects, node: str) -> list[tuple[str, str]]:
    return [(each["type"], each["address"]) for each in world.nodes[node]["status"]["addresses"]]


WORLDS = st.builds(
    KnownObjects,
    nodes=st.dictionaries(NAMES.filter(bool), st.lists(ADDRESS_TYPES.flatmap(address), max_size=4), max_size=3).map(
        lambda drawn: {name: node_of(name, found) for name, found in drawn.items()}
    ),
    machines=st.dictionaries(NAMES.filter(bool), NAMES, max_size=3),
    machine_namespace=st.sampled_from([None, "machines"]),
)


@st.composite
def requests(draw: Any, world: KnownObjects) -> Drawn:
    """Right in each point more often than not."""

    def usually(right: Any, otherwise: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(st.just(right), st.just(right), st.just(right), otherwise))

    user = draw(IDENTITIES)
    node = user.removeprefix("system:node:")
    is_client = draw(st.booleans()) if not user.startswith("system:node:") else False
    known = [] if is_client else (addresses_of(world, node) if node in world.nodes else [])
    names = [text for kind, text in known if kind in {"Hostname", "InternalDNS"}]
    ips = [text for kind, text in known if kind.endswith("IP")]
    right_name = draw(st.sampled_from([user or AGENT, f"{AGENT}a", GARDENADM])) if is_client else user or "unknown"
    group = "system:nodes"
    if is_client:
        group = "gardener.cloud:system:shoots" if right_name.startswith(GARDENADM) else "gardener.cloud:node-agents"
    return Drawn(
        user=user,
        common_names=usually([right_name], st.lists(IDENTITIES.filter(bool), max_size=2)),
        organizations=usually([group], st.lists(GROUPS, max_size=2)),
        dns=usually(names, st.lists(NAMES, max_size=2)),
        ips=usually(ips, st.lists(IPS, max_size=2)),
        more=usually("", st.sampled_from(sorted(MORE))),
        usages=usually(["digital signature", "client auth" if is_client else "server auth"], st.lists(USAGES)),
        signer=usually(CLIENT if is_client else SERVING, st.sampled_from([SERVING, CLIENT])),
    )


def may_be_approved(drawn: Drawn, world: KnownObjects) -> bool:
    """The oracle."""
    items = [("CN", name) for name in drawn.common_names] + [("O", name) for name in drawn.organizations]
    items += [("DNS", name) for name in drawn.dns] + [("IP", oracle.plain(ip)) for ip in drawn.ips]
    items += [(drawn.more, "")] if drawn.more else []
    nodes = {name: {_item(*each) for each in addresses_of(world, name)} - {("", "")} for name in world.nodes}
    return oracle.may_be_approved(
        oracle.Request(user=drawn.user, signer=drawn.signer, usages=drawn.usages, items=items),
        oracle.ClusterNodes(nodes=nodes, machines=None if world.machine_namespace is None else world.machines),
    )


def _item(kind: str, address: str) -> oracle.Item:
    if kind.endswith("IP"):
        return "IP", oracle.plain(address)
    return ("DNS", address) if kind in {"Hostname", "InternalDNS"} else ("", "")


@settings(max_examples=300, deadline=None)
@given(st.data(), WORLDS)
def test_exactly_what_the_rules_allow_is_approved(data: st.DataObject, world: KnownObjects) -> None:
    drawn = data.draw(requests(world))
    body = signing_request(
        drawn.common_names, organizations=drawn.organizations, dns=drawn.dns, ips=drawn.ips, **MORE[drawn.more]
    )
    csr = csr_object(body, user=drawn.user, signer=drawn.signer, usages=drawn.usages)
    decision = asyncio.run(decide(csr, world, Rules()))
    assert isinstance(decision, Approval) == may_be_approved(drawn, world), (drawn, world, decision)


BODIES = [
    signing_request("system:node:a", dns=["a"], ips=["10.0.0.1"]),
    pem(hand_made([("2.5.4.3", 0x0C, b"system:node:a"), ("2.5.4.10", 0x0C, b"system:nodes")])),
]
PERFECT = KnownObjects({"a": node_object("a", Hostname="a", InternalIP="10.0.0.1")}, {"m": "a"})


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


# --- the oracle itself


def test_the_oracle_reads_all_that_is_in_a_request() -> None:
    body = signing_request(
        "system:node:a",
        organizations=["system:nodes", "x"],
        dns=["a"],
        ips=["10.0.0.1", "2001:db8::1"],
        others=MORE["email"]["others"],
        subject=MORE["unit"]["subject"],
        extensions=MORE["constraints"]["extensions"],
    )
    assert sorted(oracle.items(body)) == [
        ("CN", "system:node:a"),
        ("DNS", "a"),
        ("IP", "10.0.0.1"),
        ("IP", "2001:db8::1"),
        ("O", "system:nodes"),
        ("O", "x"),
        ("attribute 55040b", "u"),
        ("extension 551d13", ""),
        ("name 81", b"a@b".hex()),
    ]


def test_the_fuzzer_starts_from_requests_that_are_approved() -> None:
    """Each of the honest ones is, and so what is one step from it is looked at."""
    assert sum(map(fuzzing.is_approved, fuzzing.seeds())) == 2 + 3 * 3
