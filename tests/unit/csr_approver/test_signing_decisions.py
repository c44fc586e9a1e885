"""Which requests are approved, which are denied and why, and which are left to others."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from agent.resource_manager.csr_approver.rules import (
    Approval,
    Check,
    Decision,
    Denial,
    NoOpinion,
    Rules,
    decide,
    decided,
    message,
)
from kit.signing.cluster import KnownObjects
from kit.signing.requests import CLIENT, SERVING, SERVING_USAGES, csr_object, node_object, signing_request
from kube.objects import Object

NODE = node_object("n1", Hostname="n1", InternalDNS="n1.int", InternalIP="10.0.0.1", ExternalIP="2001:db8:0:0::1")
ALL_NAMES: dict[str, Any] = {"dns": ["n1.int", "n1"], "ips": ["2001:db8::1", "10.0.0.1"]}
USER = "system:node:n1"


def known(
    machines: Mapping[str, str] = {"m1": "n1"},
    *,
    nodes: Mapping[str, Object] = {"n1": NODE},
    machine_namespace: str | None = "shoot--a",
) -> KnownObjects:
    return KnownObjects(nodes, machines, machine_namespace)


async def serving(
    world: KnownObjects | None = None,
    *,
    user: str = USER,
    common_name: str | Sequence[str] | None = None,
    groups: Sequence[str] = ("system:nodes",),
    usages: Sequence[str] = ("digital signature", "server auth"),
    rules: Rules | None = None,
    **requested: Any,
) -> Decision:
    pem = signing_request(user if common_name is None else common_name, **(requested or ALL_NAMES))
    return await decide(csr_object(pem, user=user, groups=groups, usages=usages), world or known(), rules or Rules())


def reason(decision: Decision) -> str:
    assert isinstance(decision, Denial), decision
    return decision.reason


# --- serving certificates


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"dns": ["n1", "n1.int", "n1"], "ips": ["10.0.0.1", "2001:db8::1", "10.0.0.1"]},
        {"usages": ["digital signature", "key encipherment", "server auth"]},
        {"world": known({}, machine_namespace=None)},  # Machines do not matter
        {"rules": Rules(address_types=frozenset({"Hostname", "InternalIP"})), "dns": ["n1"], "ips": ["10.0.0.1"]},
    ],
)
async def test_all_addresses_of_the_node_in_any_order_and_form_are_approved(request_: dict[str, Any]) -> None:
    assert await serving(**request_) == Approval()


DNS = "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
COMMON_NAME = "common name in CSR does not match username:"
NODES = 'organization in CSR does not match nodes group: only "system:nodes" is allowed'
IPS = "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"user": "kubernetes-admin"}, 'username "kubernetes-admin" is not prefixed with "system:node:"'),
        ({"user": "system:nodes:n1"}, 'username "system:nodes:n1" is not prefixed with "system:node:"'),
        ({"dns": [], "common_name": "other"}, "no DNS names or IP addresses in the SANs found"),
        *(
            ({**ALL_NAMES, "common_name": name}, f'{COMMON_NAME} common name {shown}, username "{USER}"')
            for name, shown in (
                ("system:node:n2", '"system:node:n2"'),
                ([USER, "admin"], f'"{USER}", "admin"'),
                ([], "none"),
            )
        ),
        *(
            ({**ALL_NAMES, "organizations": groups}, f"{NODES}, found [{found}]")
            for groups, found in (
                ([], ""),
                (["system:nodes", "system:masters"], '"system:masters" "system:nodes"'),
                (["system:nodes", "system:nodes"], '"system:nodes" "system:nodes"'),
                (["system:masters"], '"system:masters"'),
            )
        ),
        ({"user": "system:node:n9", **ALL_NAMES}, 'could not find node object with name "n9"'),
        ({"user": "system:node:", **ALL_NAMES}, 'could not find node object with name ""'),
        ({"dns": ["n1"], "ips": ["10.0.0.1"]}, f"{DNS}: only in CSR [], only in node [n1.int]"),
        ({**ALL_NAMES, "dns": ["n1", "N1.int"]}, f"{DNS}: only in CSR [N1.int], only in node [n1.int]"),
        ({**ALL_NAMES, "dns": ["n1", "n1.int", "x"]}, f"{DNS}: only in CSR [x], only in node []"),
        ({"dns": ["n1", "n1.int"], "ips": ["10.0.0.1"]}, f"{IPS}: only in CSR [], only in node [2001:db8::1]"),
        ({**ALL_NAMES, "ips": ["10.0.0.2", "2001:db8::1"]}, f"{IPS}: only in CSR [10.0.0.2], only in node [10.0.0.1]"),
        ({"rules": Rules(address_types=frozenset({"Hostname"}))}, f"{DNS}: only in CSR [n1.int], only in node []"),
        *(
            (
                {"world": known(machines)},
                f'Expected exactly one machine in namespace "shoot--a" for node "n1" but {how}',
            )
            for machines, how in (({}, "found 0"), ({"m1": "n2"}, "found 0"), ({"m1": "n1", "m2": "n1"}, "found 2"))
        ),
    ],
)
async def test_a_serving_certificate_is_denied(request_: dict[str, Any], expected: str) -> None:
    assert reason(await serving(**request_)) == expected


async def test_the_checks_come_in_order() -> None:
    """Each request fails in all later checks as well."""
    nothing = known({}, nodes={})
    lone = known({})
    broken = known(nodes={"n1": node_object("n1", InternalIP=["10.0.0.1", "x", "y"])})
    checks = [
        await serving(nothing, user="x", common_name="y", organizations=[], dns=[]),
        await serving(nothing, common_name="y", organizations=[], dns=[]),
        await serving(nothing, common_name="y", organizations=[], dns=["x"]),
        await serving(nothing, organizations=[], dns=["x"]),
        await serving(nothing, dns=["x"]),
        await serving(lone, dns=["x"]),
        await serving(broken, dns=["x"], ips=["10.9.9.9"]),
        await serving(dns=["x"], ips=["10.9.9.9"]),
        await serving(dns=["n1", "n1.int"], ips=["10.9.9.9"]),
    ]
    assert [check.check for check in checks if isinstance(check, Denial)] == [
        *(Check.USERNAME, Check.NO_SANS, Check.COMMON_NAME, Check.ORGANIZATION, Check.NODE, Check.MACHINE),
        *(Check.IP_ADDRESSES, Check.DNS_NAMES, Check.IP_ADDRESSES),
    ]
    assert 'IP address "x" in node.Status.Addresses is invalid: ' in reason(checks[6])


@pytest.mark.parametrize(
    ("request_", "may_change"),
    [
        ({"user": "x", "dns": []}, False),
        ({"organizations": ["system:masters"], **ALL_NAMES}, False),
        ({"user": "system:node:n9", **ALL_NAMES}, True),
        ({"dns": ["n1"]}, True),
    ],
)
async def test_only_what_the_cluster_is_to_blame_for_may_change(request_: dict[str, Any], may_change: bool) -> None:
    decision = await serving(**request_)
    assert isinstance(decision, Denial)
    assert decision.may_change is may_change


async def test_what_the_request_alone_decides_costs_no_question() -> None:
    world = known()
    await serving(world, user="x")
    await serving(world, organizations=["system:masters"], **ALL_NAMES)
    assert world.questions == []
    await serving(world, user="system:node:n9", **ALL_NAMES)
    assert world.questions == ["node n9"]


async def test_a_node_without_addresses_gets_nothing() -> None:
    assert reason(await serving(known(nodes={"n1": node_object("n1")}))).startswith(DNS)
    assert isinstance(await serving(known(nodes={"n1": {"metadata": {"name": "n1"}}}), ips=["10.0.0.1"]), Denial)


@pytest.mark.parametrize(
    ("in_node", "in_request"),
    [
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("fd00::0001", "fd00::1"),
    ],
)
async def test_addresses_are_compared_by_value(in_node: str, in_request: str) -> None:
    world = known(nodes={"n1": node_object("n1", InternalIP=in_node)})
    assert await serving(world, ips=[in_request]) == Approval()


@pytest.mark.parametrize("broken", ["", "10.0.0", "10.0.0.01", "host", "fe80::g", "10.0.0.1/8"])
async def test_a_broken_address_of_the_node_is_reported(broken: str) -> None:
    world = known(nodes={"n1": node_object("n1", ExternalIP=broken)})
    assert reason(await serving(world, ips=["10.0.0.1"])).startswith(
        f'IP address "{broken}" in node.Status.Addresses is invalid: '
    )


async def test_a_long_difference_is_cut() -> None:
    denied = reason(await serving(dns=[f"h{i:04}" for i in range(1000)]))
    assert denied.endswith("h0009 and 990 more], only in node [n1 n1.int]")


EXCESS = "CSR requests contents that are not allowed"
USAGES = 'usages of CSR must be "digital signature", "{}" and optionally "key encipherment", found'
MORE: list[tuple[dict[str, Any], str]] = [
    ({"others": [x509.RFC822Name("a@b")]}, f"{EXCESS}: [email]"),
    ({"others": [x509.UniformResourceIdentifier("spiffe://a/b"), x509.RFC822Name("a@b")]}, f"{EXCESS}: [URI email]"),
    ({"subject": [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u")]}, f"{EXCESS}: [subject:OU]"),
    ({"subject": [x509.NameAttribute(NameOID.USER_ID, "0")]}, f"{EXCESS}: [subject:UID]"),
    ({"extensions": [x509.BasicConstraints(ca=True, path_length=0)]}, f"{EXCESS}: [extension:2.5.29.19]"),
]
"""What belongs in no certificate."""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        *MORE,
        *(
            ({"usages": usages}, f"{USAGES.format('server auth')} [{found}]")
            for usages, found in (
                ([], ""),
                (["server auth"], '"server auth"'),
                (["digital signature", "client auth"], '"client auth" "digital signature"'),
                ([*SERVING_USAGES, "client auth"], '"client auth" "digital signature" "server auth"'),
            )
        ),
        ({"groups": ["system:masters"]}, 'the user is not in the group "system:nodes"'),
    ],
)
async def test_nothing_but_a_serving_certificate_is_signed(more: dict[str, Any], expected: str) -> None:
    assert reason(await serving(**ALL_NAMES, **more)) == expected


async def test_a_malformed_request_is_denied() -> None:
    denied = reason(await decide(csr_object(b"x", user=USER), known(), Rules()))
    assert denied == "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"


# --- client certificates

AGENT = "gardener.cloud:node-agent:machine:"
GARDENADM = "gardener.cloud:gardenadm:shoot:s"
BOOTSTRAP = "system:bootstrap:abcdef"


AGENTS_GROUP = "gardener.cloud:node-agents"
SHOOTS_GROUP = "gardener.cloud:system:shoots"


async def client(
    world: KnownObjects,
    *,
    user: str,
    common_name: str | Sequence[str],
    organizations: Sequence[str] = (AGENTS_GROUP,),
    usages: Sequence[str] | None = None,
    **requested: Any,
) -> Decision:
    pem = signing_request(common_name, organizations=organizations, **requested)
    return await decide(csr_object(pem, user=user, signer=CLIENT, usages=usages), world, Rules())


BOOTSTRAPPED = "Cannot use bootstrap token since gardener-node-agent for machine"


@pytest.mark.parametrize(
    ("world", "user", "name", "expected"),
    [
        (known({"m1": "n1"}), f"{AGENT}m1", "m1", None),
        (known({"m1": ""}), f"{AGENT}m1", "m1", None),
        (known({"m1": ""}), BOOTSTRAP, "m1", None),
        (known({"m1": "gone"}), BOOTSTRAP, "m1", None),
        (known({"m1": "n1"}), BOOTSTRAP, "m1", f'{BOOTSTRAPPED} "m1" is already bootstrapped'),
        (known({"m1": "n1"}), BOOTSTRAP, "m2", 'machine "m2" does not exist'),
        (known({"m1": "n1"}), "kubernetes-admin", "m2", 'machine "m2" does not exist'),
        (known(), f"{AGENT}m2", "m1", f'username "{AGENT}m2" and commonName "{AGENT}m1" do not match'),
        *(
            (known(), user, "m1", f'username "{user}" is not allowed to create CSRs for a gardener-node-agent')
            for user in ("kubernetes-admin", "system:node:n1")
        ),
        (known(machine_namespace=None), BOOTSTRAP, "new", None),
        (known(machine_namespace=None), BOOTSTRAP, "n1", f'{BOOTSTRAPPED} "n1" is already bootstrapped'),
        (known(machine_namespace=None), f"{AGENT}n1", "n1", None),
    ],
)
async def test_a_node_agent_gets_the_certificate_of_its_machine(
    world: KnownObjects, user: str, name: str, expected: str | None
) -> None:
    decision = await client(world, user=user, common_name=f"{AGENT}{name}")
    assert decision == Approval() if expected is None else reason(decision) == expected


GARDENADM_USER = "is not allowed to create CSRs for a gardenadm client"


@pytest.mark.parametrize(
    ("user", "organizations", "expected"),
    [
        (BOOTSTRAP, [SHOOTS_GROUP], None),
        ("a", [SHOOTS_GROUP], f'username "a" {GARDENADM_USER}'),
        (f"{AGENT}m1", [SHOOTS_GROUP], f'username "{AGENT}m1" {GARDENADM_USER}'),
        ("a", [], f'username "a" {GARDENADM_USER}'),
    ],
)
async def test_gardenadm_comes_with_a_bootstrap_token(
    user: str, organizations: list[str], expected: str | None
) -> None:
    decision = await client(known(), user=user, common_name=GARDENADM, organizations=organizations)
    assert decision == Approval() if expected is None else reason(decision) == expected


CLIENTS = [
    pytest.param(BOOTSTRAP, f"{AGENT}new", AGENTS_GROUP, "node agents", id="first"),
    pytest.param(f"{AGENT}m1", f"{AGENT}m1", AGENTS_GROUP, "node agents", id="renewal"),
    pytest.param(BOOTSTRAP, GARDENADM, SHOOTS_GROUP, "nodes", id="gardenadm"),
]
WITH_A_NEW_MACHINE = {"m1": "n1", "new": ""}


@pytest.mark.parametrize("others", [[], ["acme:oncall-admins"], ["system:masters"], [""], ["{}"], ["{}", "x"]])
@pytest.mark.parametrize(("user", "name", "group", "reported"), CLIENTS)
async def test_a_client_certificate_has_one_organization(
    user: str, name: str, group: str, reported: str, others: list[str]
) -> None:
    """Each of them is a group that its holder would be in."""
    world, extra = known(WITH_A_NEW_MACHINE), [each.format(group) for each in others]
    expected = f'organization in CSR does not match {reported} group: only "{group}" is allowed, found ['
    for organizations in ([group, *extra], [*extra, group], extra):
        decision = await client(world, user=user, common_name=name, organizations=organizations)
        if organizations == [group]:
            assert decision == Approval()
        else:
            assert reason(decision).startswith(expected)
            assert reason(decision).count('"') == 2 + 2 * len(organizations)
    assert set(world.questions) <= {"machine m1", "machine new"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        *MORE,
        ({"dns": ["kubernetes"]}, f"{EXCESS}: [DNS:kubernetes]"),
        ({"ips": ["10.0.0.1"], "dns": ["n1"]}, f"{EXCESS}: [DNS:n1 IP:10.0.0.1]"),
        *(
            ({"usages": usages}, USAGES.format("client auth"))
            for usages in (
                [],
                ["client auth"],
                ["digital signature", "server auth"],
                ["digital signature", "client auth", "server auth"],
                ["digital signature", "client auth", "cert sign"],
            )
        ),
    ],
)
@pytest.mark.parametrize(("user", "name", "group", "reported"), CLIENTS)
async def test_nothing_but_a_client_certificate_is_signed(
    user: str, name: str, group: str, reported: str, more: dict[str, Any], expected: str
) -> None:
    world = known(WITH_A_NEW_MACHINE)
    assert reason(await client(world, user=user, common_name=name, organizations=[group], **more)).startswith(expected)


async def test_a_client_certificate_needs_no_enciphering_key() -> None:
    decision = await client(
        known(), user=f"{AGENT}m1", common_name=f"{AGENT}m1", usages=["client auth", "digital signature"]
    )
    assert decision == Approval()


@pytest.mark.parametrize(
    "signer", ["", "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/legacy-unknown", "example.com/x"]
)
async def test_other_signers_are_left_alone(signer: str) -> None:
    for pem in (signing_request(USER, **ALL_NAMES), signing_request(f"{AGENT}m1", organizations=[AGENTS_GROUP])):
        for user in (USER, f"{AGENT}m1"):
            assert await decide(csr_object(pem, user=user, signer=signer), known(), Rules()) == NoOpinion()


@pytest.mark.parametrize(
    "common_name", ["somebody", "system:node:n1", "gardener.cloud:node-agent:machine", [], ["a", "b"]]
)
async def test_other_clients_are_not_disturbed(common_name: str | list[str]) -> None:
    world = known()
    assert await client(world, user="anybody", common_name=common_name) == NoOpinion()
    assert world.questions == []


async def test_a_malformed_request_for_a_client_certificate_is_left_alone() -> None:
    assert await decide(csr_object(b"x", user="u", signer=CLIENT), known(), Rules()) == NoOpinion()


@pytest.mark.parametrize("names", [[f"{AGENT}m1", "system:kube-controller-manager"], ["x", f"{AGENT}m1"]])
async def test_a_second_common_name_is_denied(names: list[str]) -> None:
    """Signers take the last one."""
    decision = await client(known(), user=f"{AGENT}m1", common_name=names)
    assert reason(decision) == "CSR has more than one common name"


# --- what is written


@pytest.mark.parametrize(("signer", "what"), [(SERVING, "kubelet server"), (CLIENT, "gardener-node-agent")])
def test_the_words_of_decisions(signer: str, what: str) -> None:
    assert message(Approval(), signer=signer) == f"Approving {what} certificate CSR (all checks passed)"
    assert message(Denial(Check.NODE, "why"), signer=signer) == f"Denying {what} certificate CSR (why)"


def test_one_condition_is_added() -> None:
    failed = {"type": "Failed", "status": "True"}
    before = {**csr_object(b""), "status": {"conditions": [failed]}}
    approved = {
        "type": "Approved",
        "status": "True",
        "reason": "RequestApproved",
        "message": "Approving kubelet server certificate CSR (all checks passed)",
    }
    assert decided(before, Approval(), signer=SERVING)["status"]["conditions"] == [failed, approved]
    assert before["status"]["conditions"] == [failed]
    denied = decided(csr_object(b""), Denial(Check.NODE, "why"), signer=SERVING)["status"]["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in denied] == [("Denied", "True", "RequestDenied")]
