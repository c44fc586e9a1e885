"""All fields of the configuration file of a garden's webhooks."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from process.configuration.blocks import CacheSyncTimeout, ClientConnection, Configuration, HTTPServer, TLSServer
from process.configuration.blocks import Server as CommonServer
from process.configuration.checks import each, one_of, quantity, required_value
from process.configuration.fields import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimit:
    api_groups: Annotated[tuple[str, ...], setting("API groups; `*`: all.", each(required_value()))] = ("*",)
    resources: Annotated[tuple[str, ...], setting("Resources (plural names); `*`: all.", each(required_value()))] = (
        "*",
    )
    size: Annotated[
        str,
        setting("Maximum size of an object in bytes, without status and managed fields, such as `100Ki`.", quantity),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    kind: Annotated[str, setting("`User`, `Group` or `ServiceAccount`.", one_of("User", "Group", "ServiceAccount"))] = (
        "User"
    )
    name: Annotated[str, setting("Name of the subject.", required_value())] = ""
    namespace: Annotated[str, setting("Namespace of a ServiceAccount.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Garden:
    size_limits: Annotated[
        tuple[SizeLimit, ...],
        setting(
            "Maximum sizes of objects of the garden API, except ShootStates. If several limits match, the "
            "smallest applies."
        ),
    ] = ()
    unrestricted_subjects: Annotated[
        tuple[Subject, ...], setting("Users, groups and ServiceAccounts that may write objects of any size.")
    ] = ()

    @property
    def enabled(self) -> bool:
        """Always true: the program has no other purpose."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedAuthorizer:
    enabled: Annotated[bool, setting("Serve authorization requests of API servers.")] = True
    authorize_with_selectors: Annotated[
        bool,
        setting(
            "Require a selector for the Seed in list requests. Set to `false` for API servers before 1.32, "
            "which do not pass selectors to authorizers."
        ),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    garden: Annotated[Garden, setting("Defaults and validates the garden API.")] = field(default_factory=Garden)
    seed_authorizer: Annotated[
        SeedAuthorizer, setting("Authorizes requests of gardenlets for objects that belong to their Seeds.")
    ] = field(default_factory=SeedAuthorizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontProxy(HTTPServer):
    server_cert_dir: Annotated[str, setting("Directory with `tls.crt` and `tls.key`; empty: that of the webhooks.")] = (
        ""
    )
    client_cert_dir: Annotated[
        str,
        setting(
            "Directory with `tls.crt` and `tls.key`, signed by a CA of the API server's "
            "`--requestheader-client-ca-file`. Empty: clients need tokens."
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class _HTTPSServer:
    webhooks: Annotated[TLSServer, setting("HTTPS server of the webhooks.")] = field(
        default_factory=partial(TLSServer, port=9449)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(CommonServer, _HTTPSServer):
    health_probes: Annotated[HTTPServer, setting("HTTP server of `/healthz` and `/readyz`.")] = field(
        default_factory=partial(HTTPServer, port=8081)
    )
    metrics: Annotated[HTTPServer, setting("HTTP server of `/metrics`.")] = field(
        default_factory=partial(HTTPServer, port=8080)
    )
    tokens: Annotated[
        HTTPServer,
        setting(
            "HTTPS server of [tokens](workload-identity.md), with the certificate of the webhooks. Port 0: disabled."
        ),
    ] = field(default_factory=HTTPServer)
    front_proxy: Annotated[
        FrontProxy,
        setting("HTTPS server of the [front proxy](garden-clients.md) for Gardener's clients. Port 0: disabled."),
    ] = field(default_factory=FrontProxy)


@dataclass(frozen=True, kw_only=True)
class _Connections:
    runtime_client_connection: Annotated[
        ClientConnection,
        setting("Connection to the cluster in which the server runs and that stores its certificates."),
    ] = field(default_factory=ClientConnection)
    garden_client_connection: Annotated[
        ClientConnection,
        setting("Connection to the garden cluster; without a kubeconfig, the runtime cluster is used."),
    ] = field(default_factory=ClientConnection)


@dataclass(frozen=True, slots=True, kw_only=True)
class GardenWebhooksConfiguration(Configuration, _Connections):
    server: Annotated[Server, setting("Servers of the program.")] = field(default_factory=Server)
    webhooks: Annotated[Webhooks, setting("Webhooks of the program.")] = field(default_factory=Webhooks)
    cache_sync_timeout: CacheSyncTimeout = 120.0
