"""A second opinion on CertificateSigningRequests, which shares nothing with the product: neither parser nor rules.

`items` walks the DER of a request by itself and lists all that is in it; what it doesn't know it lists as well.
`entitled` states which lists of items a user may have signed, no item more and none fewer.
"""

import base64
import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SERVING = "kubernetes.io/kubelet-serving"
CLIENT = "kubernetes.io/kube-apiserver-client"
_USAGES = {SERVING: "server auth", CLIENT: "client auth"}
_ATTRIBUTES = {"550403": "CN", "55040a": "O"}
_LIST_OF_EXTENSIONS, _ALTERNATIVE_NAMES = "2a864886f70d01090e", "551d11"
_ENCODINGS = {0x0C: "utf-8", 0x12: "ascii", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1A: "ascii"}
_ENCODINGS |= {0x1C: "utf-32-be", 0x1E: "utf-16-be"}

Item = tuple[str, str]
"""Type and value: `("CN", "system:node:a")`, `("DNS", "a")`, `("IP", "10.0.0.1")`."""


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """What is true in the cluster."""

    nodes: Mapping[str, Collection[Item]]
    """The alternative names of each Node."""
    machines: Mapping[str, str] | None
    """Of each Machine the Node that it became, if any. None: Machines do not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    user: str
    signer: str
    usages: Sequence[str]
    items: Sequence[Item] = field(default_factory=tuple)


def may_be_approved(request: Request, cluster: ClusterNodes) -> bool:
    wanted = {"digital signature", _USAGES.get(request.signer, "")}
    if not wanted <= set(request.usages) <= wanted | {"key encipherment"}:
        return False
    subject = sorted(item for item in request.items if item[0] in {"CN", "O"})
    rest = {item for item in request.items if item[0] not in {"CN", "O"}}
    return (subject, rest) in entitled(request.user, request.signer, subject, cluster)


def entitled(
    user: str, signer: str, subject: Sequence[Item], cluster: ClusterNodes
) -> Iterator[tuple[list[Item], Collection[Item]]]:
    """The subjects and all further items that this user may have signed."""
    name = next((value for kind, value in subject if kind == "CN"), "")
    if signer == SERVING:
        node = user[len("system:node:") :]
        machines = 1 if cluster.machines is None else list(cluster.machines.values()).count(node)
        names = set(cluster.nodes.get(node, ()))
        if user == f"system:node:{node}" and machines == 1 and names:
            yield [("CN", user), ("O", "system:nodes")], names
        return
    has_token = user.startswith("system:bootstrap:")
    if has_token and name.startswith("gardener.cloud:gardenadm:shoot:"):
        yield [("CN", name), ("O", "gardener.cloud:system:shoots")], set()
    machine = name[len("gardener.cloud:node-agent:machine:") :]
    known = {machine: machine} if cluster.machines is None else cluster.machines
    is_new = has_token and known.get(machine) not in cluster.nodes
    if name == f"gardener.cloud:node-agent:machine:{machine}" and machine in known and (is_new or user == name):
        yield [("CN", name), ("O", "gardener.cloud:node-agents")], set()


def plain(address: str) -> str:
    """An IPv4 address within IPv6 is that address."""
    ip = ipaddress.ip_address(address)
    return str(ip.ipv4_mapped or ip) if ip.version == 6 else str(ip)


# --- reading


def items(pem: bytes) -> list[Item]:
    """Of one PEM block. Raises ValueError (also IndexError and the like) if it is none."""
    text = pem.decode("latin-1").split("-----BEGIN CERTIFICATE REQUEST-----")[1].split("-----END")[0]
    (request,) = _parts(base64.b64decode("".join(text.split())))
    info = _parts(request[1])[0]
    _version, subject, _key, *more = _parts(info[1])
    found = [_attribute(pair) for _, names in _parts(subject[1]) for _, pair in _parts(names)]
    for tag, attributes in more:
        assert tag == 0xA0
        for _, attribute in _parts(attributes):
            kind, values = _parts(attribute)
            if kind[1].hex() == _LIST_OF_EXTENSIONS:
                for _, extensions in _parts(values[1]):
                    for _, extension in _parts(extensions):
                        found += _extension(extension)
            elif kind[1].hex().startswith("2b06010401823702"):
                found.append(("extensions of Microsoft", ""))
    return found


def _attribute(pair: bytes) -> Item:
    kind, (tag, value) = _parts(pair)
    text = value.decode(_ENCODINGS[tag]) if tag in _ENCODINGS else value.hex()
    return _ATTRIBUTES.get(kind[1].hex(), f"attribute {kind[1].hex()}"), text


def _extension(extension: bytes) -> Iterator[Item]:
    kind, *_, content = _parts(extension)
    if kind[1].hex() != _ALTERNATIVE_NAMES:
        yield f"extension {kind[1].hex()}", ""
        return
    for _, names in _parts(content[1]):
        for tag, value in _parts(names):
            match tag:
                case 0x82:
                    yield "DNS", value.decode("latin-1")
                case 0x87:
                    yield "IP", plain(str(ipaddress.ip_address(value)))
                case _:
                    yield f"name {tag:x}", value.hex()


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """The values that stand one after the other: tags and contents."""
    found, place = [], 0
    while place < len(der):
        tag, length, start = der[place], der[place + 1], place + 2
        if length >= 0x80:
            start += length - 0x80
            length = int.from_bytes(der[place + 2 : start], "big")
        if start + length > len(der):
            raise ValueError("it ends too early")
        found.append((tag, der[start : start + length]))
        place = start + length
    return found
