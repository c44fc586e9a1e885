"""Parts of the admission server, in addition to those of every program; see `process.composition`.

    caches          objects of the clusters that handlers read; the certificate is loaded with them
    serving         the HTTPS server

There is no leader: every replica serves.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from config.resource_manager.schema import ResourceManagerConfiguration
from process.composition import Composition, Parts
from webhooks.routes import disabled, enabled, public, routes
from webhooks.server import Clients, Requests, serving_check, webhook_server
from webhooks.state import SharedListers
from webhooks.tls import AuthoritiesFile, ServingCertificate, directory_of

if TYPE_CHECKING:
    from config.webhooks.schema import GardenWebhooksConfiguration


def resource_manager(base: Composition[ResourceManagerConfiguration]) -> Parts:
    return _serving(base.config, SharedListers(base.clusters["source"], base.clusters["target"]))


def garden(base: "Composition[GardenWebhooksConfiguration]") -> Parts:
    parts = _serving(base.config, SharedListers(base.clusters["runtime"], base.clusters["garden"]))
    if base.config.server.tokens.port:
        parts += _tokens(base)
    if base.config.server.front_proxy.port:
        parts += _front_proxy(base)
    return parts


def _tokens(base: "Composition[GardenWebhooksConfiguration]") -> Parts:
    from webhooks.tokens.parts import parts

    config = base.config
    return parts(
        config.server.tokens,
        certificates=directory_of(config.server.webhooks.tls.server_cert_dir),
        grace_period=config.graceful_shutdown_timeout,
        runtime=base.clusters["runtime"],
        garden=base.clusters["garden"],
    )


def _front_proxy(base: "Composition[GardenWebhooksConfiguration]") -> Parts:
    from webhooks.front_proxy.parts import parts

    server = base.config.server
    return parts(
        server.front_proxy,
        certificates=server.webhooks.tls.server_cert_dir,
        grace_period=base.config.graceful_shutdown_timeout,
        garden=base.clusters["garden"],
    )


def _serving(config: "ResourceManagerConfiguration | GardenWebhooksConfiguration", state: SharedListers) -> Parts:
    address, table = config.server.webhooks, routes(config, state)
    client_ca = address.tls.client_ca_file
    certificate = ServingCertificate(
        directory_of(address.tls.server_cert_dir), AuthoritiesFile(Path(client_ca)) if client_ca else None
    )
    clients = Clients(address.tls.client_names) if client_ca else None
    server = webhook_server(
        Requests(enabled(table), disabled(table), clients=clients, public=public(table)),
        host=address.bind_address,
        port=address.port,
        tls=certificate.context,
        grace_period=config.graceful_shutdown_timeout,
    )
    checks = [serving_check("webhook-server", server)]
    return Parts(checks=checks, caches=[state], ready=[certificate], serving=[server])
