"""Ports of containers, as Services and annotations name them."""

import re
from dataclasses import dataclass
from typing import Any

from kube.objects import Object

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a container, by number or by name; without one (None) all ports of the protocol."""

    protocol: str
    port: int | str | None
    end_port: int | None = None
    names_protocol: bool = True
    """Whether the protocol was said, or is the default."""

    @property
    def slug(self) -> str:
        """Its part of names: `tcp-8080`, `udp-dns`."""
        return f"{self.protocol.lower()}-{self.port}"

    def rule(self) -> Object:
        """As an entry of `ports` in a policy."""
        return {
            "protocol": self.protocol,
            **({"port": self.port} if self.port is not None else {}),
            **({"endPort": self.end_port} if self.end_port is not None else {}),
        }

    def __str__(self) -> str:
        parts = [self.protocol] if self.names_protocol else []
        return "/".join(parts + ([str(self.port)] if self.port is not None else []))


def allowed_port(entry: dict[str, Any]) -> Port:
    """The port that an entry of an annotation means; a string of digits is a number.

    Raises:
        ValueError: no policy can have such a port.
    """
    protocol, port, end_port = entry.get("protocol") or "TCP", entry.get("port"), entry.get("endPort")
    if protocol not in _PROTOCOLS:
        raise ValueError(f'protocol "{protocol}" is none of {", ".join(_PROTOCOLS)}')
    if isinstance(port, str) and port.isascii() and port.isdecimal():
        port = int(port)
    if isinstance(port, int) and not 1 <= port <= 65535:
        raise ValueError(f"port {port} is not between 1 and 65535")
    if isinstance(port, str) and not _NAME.fullmatch(port):
        raise ValueError(f'port "{port}" is neither a number nor the name of a port')
    if end_port is not None and not (isinstance(port, int) and port <= end_port <= 65535):
        raise ValueError(f"endPort {end_port} is not between a port given as a number and 65535")
    return Port(protocol, port, end_port, names_protocol=bool(entry.get("protocol")))
