"""External access to a component for people: through the ingress controller, with a password."""

from collections.abc import Mapping
from dataclasses import dataclass

from components import nginx_ingress
from components.parts import GARDEN, made
from components.secrets import tables
from components.secrets.configs import Config
from components.seed_component import SeedInputs
from kube.objects import Object
from kube.resources import INGRESSES

_PREFIX = "nginx.ingress.kubernetes.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """Attributes:
    host: external host name.
    login_secret: users with access.
    tls_secret: certificate for the host.
    """

    host: str
    login_secret: str
    tls_secret: str


def entrance(inputs: SeedInputs, name: str, letter: str) -> Entrance:
    """Args: name: of the component. letter: first one of its host."""
    certificate = inputs.wildcard_certificate or inputs.secrets.current(f"{name}-tls").name
    return Entrance(host=_host(inputs, letter), login_secret=inputs.login_secret, tls_secret=certificate)


def certificates(inputs: SeedInputs, name: str, letter: str) -> list[Config]:
    """Certificates to be generated for `entrance`."""
    return [] if inputs.wildcard_certificate else [tables.ingress_server(name, _host(inputs, letter))]


def _host(inputs: SeedInputs, letter: str) -> str:
    return f"{letter}-seed.{inputs.ingress_domain}"


def ingress(
    name: str,
    entrance: Entrance,
    *,
    port: int,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Args: name: also of the Service. annotations: further ones."""
    notes = {
        f"{_PREFIX}/auth-type": "basic",
        f"{_PREFIX}/auth-realm": "Authentication Required",
        f"{_PREFIX}/auth-secret": entrance.login_secret,
        **(annotations or {}),
    }
    backend = {"service": {"name": name, "port": {"number": port}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {
        "ingressClassName": nginx_ingress.CLASS,
        "rules": [{"host": entrance.host, "http": {"paths": [path]}}],
        "tls": [{"hosts": [entrance.host], "secretName": entrance.tls_secret}],
    }
    return made(INGRESSES, name, namespace=GARDEN, labels=labels, annotations=notes, spec=spec)
