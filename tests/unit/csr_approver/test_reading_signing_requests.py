"""A request reports one thing only, or it is malformed."""

import base64
import ipaddress
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kit.signing.requests import (
    COMMON_NAME,
    EXTENSIONS,
    MICROSOFT_EXTENSIONS,
    ORGANIZATION,
    attribute,
    csr_object,
    dns_extensions,
    hand_made,
    pem,
    signing_request,
)
from kube.signing_requests import MalformedRequestError, is_pending, parse, requested, signer_of

UTF8 = 0x0C
SUBJECT = [(COMMON_NAME, UTF8, b"system:node:n1"), (ORGANIZATION, UTF8, b"system:nodes")]
GOOD = signing_request("system:node:n1", dns=["n1", "n1.int"], ips=["10.0.0.1", "2001:db8::1"])
BLOCK = GOOD.strip()


def text(pem_bytes: bytes) -> str:
    return base64.b64encode(pem_bytes).decode()


def test_names_and_addresses_are_read() -> None:
    found = requested(text(GOOD))
    assert found.common_names == ("system:node:n1",)
    assert found.organizations == ("system:nodes",)
    assert found.dns_names == {"n1", "n1.int"}
    assert found.ip_addresses == {ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("2001:db8::1")}
    assert found.others == frozenset()


def test_user_groups_and_usages_are_those_of_the_api_server() -> None:
    request = parse(csr_object(GOOD, user="u", groups=["g"], usages=["server auth"]))
    assert (request.username, request.groups, request.usages) == ("u", ("g",), ("server auth",))
    assert signer_of(csr_object(GOOD)) == "kubernetes.io/kubelet-serving"


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(b"Certificate Request:\n  Data:\n" + GOOD, id="text before the block"),
        pytest.param(GOOD + b"\nmore\n", id="text after the block"),
        pytest.param(GOOD.replace(b"\n", b"\r\n"), id="line ends of Windows"),
        pytest.param(BLOCK, id="no last line end"),
        pytest.param(pem(hand_made(SUBJECT, attribute(EXTENSIONS, dns_extensions("n1", "n1.int")))), id="by hand"),
    ],
)
def test_it_may_be_written_in_more_than_one_way(written: bytes) -> None:
    assert requested(text(written)).dns_names == {"n1", "n1.int"}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "PEM block type must be CERTIFICATE REQUEST"),
        (b"nothing", "PEM block type must be CERTIFICATE REQUEST"),
        (GOOD.replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), "PEM block type must be CERTIFICATE REQUEST"),
        (GOOD.replace(b"CERTIFICATE REQUEST", b"NEW CERTIFICATE REQUEST"), "PEM block type must be"),
        (GOOD.replace(b"-----\n", b"-----\nProc-Type: 4\n\n", 1), "PEM block type must be"),
        (GOOD + GOOD, "more than one PEM block"),
        (GOOD.replace(b"-----BEGIN", b"-----BEGIN X-----\n-----BEGIN"), "more than one PEM block"),
        (pem(b""), "PEM block type must be"),
        (pem(b"\x30\x00"), "it is not PKCS#10"),
        (pem(b"hello"), "it is not PKCS#10"),
        (pem(hand_made(SUBJECT) + b"\x00"), "it is not PKCS#10"),
        (b"-----BEGIN CERTIFICATE REQUEST-----\nQQ==QQ==\n-----END CERTIFICATE REQUEST-----\n", "base64"),
        (b"A" * 300_000, "longer than"),
        *((broken, "base64") for broken in ("%%%", "ä", "QUJ")),
    ],
)
def test_what_is_no_request_is_malformed(written: bytes | str, message: str) -> None:
    with pytest.raises(MalformedRequestError, match=message):
        requested(text(written) if isinstance(written, bytes) else written)


GOOD_NAMES, OTHER_NAMES = dns_extensions("n1"), dns_extensions("kubernetes.default.svc")


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param([attribute(EXTENSIONS, GOOD_NAMES), attribute(EXTENSIONS, OTHER_NAMES)], id="two lists"),
        pytest.param(
            # The library takes the first list for the truth, signers another one.
            [attribute(MICROSOFT_EXTENSIONS, GOOD_NAMES), attribute(EXTENSIONS, OTHER_NAMES)],
            id="a list of Microsoft's first",
        ),
        pytest.param([attribute(EXTENSIONS, GOOD_NAMES), attribute(MICROSOFT_EXTENSIONS, OTHER_NAMES)], id="and last"),
        pytest.param([attribute(MICROSOFT_EXTENSIONS, GOOD_NAMES)], id="only a list of Microsoft's"),
        pytest.param([attribute(EXTENSIONS, *sorted([GOOD_NAMES, OTHER_NAMES]))], id="two lists in one"),
        pytest.param(
            [attribute(EXTENSIONS, b"\x30" + bytes([2 * (len(GOOD_NAMES) - 2)]) + GOOD_NAMES[2:] * 2)],
            id="names twice in a list",
        ),
    ],
)
def test_names_that_could_be_read_in_two_ways_are_malformed(attributes: list[bytes]) -> None:
    with pytest.raises(MalformedRequestError):
        requested(text(pem(hand_made(SUBJECT, *attributes))))


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (signing_request(["a", "b"]), ("a", "b")),
        # In UTF-16, and of any length: Nodes have names of up to 253 characters.
        (pem(hand_made([(COMMON_NAME, 0x1E, "system:node:n1".encode("utf-16-be"))])), ("system:node:n1",)),
        *((pem(hand_made([(COMMON_NAME, UTF8, b"n" * length)])), ("n" * length,)) for length in (0, 65, 265)),
    ],
)
def test_common_names_are_what_they_report(written: bytes, names: tuple[str, ...]) -> None:
    assert requested(text(written)).common_names == names


@pytest.mark.parametrize(
    ("tag", "value"), [(0x1C, "a".encode("utf-32-be")), (0x1A, b"a")], ids=["Universal", "Visible"]
)
def test_text_that_the_signer_leaves_out_is_malformed(tag: int, value: bytes) -> None:
    for subject in ([(COMMON_NAME, tag, value)], [(COMMON_NAME, UTF8, b"a"), (ORGANIZATION, tag, value)]):
        with pytest.raises(MalformedRequestError):
            requested(text(pem(hand_made(subject))))


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        ({"others": [x509.RFC822Name("a@b")]}, "email"),
        ({"others": [x509.UniformResourceIdentifier("spiffe://a/b")]}, "URI"),
        ({"others": [x509.RegisteredID(NameOID.COMMON_NAME)]}, "RegisteredID"),
        ({"subject": [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u")]}, "subject:OU"),
        ({"subject": [x509.NameAttribute(x509.ObjectIdentifier("1.2.3.4"), "u")]}, "subject:1.2.3.4"),
        ({"extensions": [x509.BasicConstraints(ca=True, path_length=None)]}, "extension:2.5.29.19"),
    ],
)
def test_whatever_else_is_requested_is_noticed(more: dict[str, Any], reported: str) -> None:
    assert requested(text(signing_request("a", **more))).others == {reported}


def test_a_range_of_addresses_is_malformed() -> None:
    network = x509.IPAddress(ipaddress.ip_network("10.0.0.0/8"))
    with pytest.raises(MalformedRequestError, match="range of IP addresses"):
        requested(text(signing_request("a", others=[network])))


@pytest.mark.parametrize(
    ("status", "pending"),
    [
        ({}, True),
        (None, True),
        ({"conditions": None}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Approved", "status": "True"}]}, False),
        ({"conditions": [{"type": "Denied", "status": "False"}]}, False),
        ({"certificate": "YQ=="}, False),
        ({"certificate": ""}, True),
    ],
)
def test_a_request_is_pending_until_a_user_decided(status: object, pending: bool) -> None:
    assert is_pending({**csr_object(GOOD), "status": status}) is pending
