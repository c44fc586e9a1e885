"""What the admission server consists of, beside what all programs do; see `process.composition`.

    caches          what handlers read of the clusters; with them, the certificate is loaded
    work            the HTTPS server

There is no leader: every replica serves.
"""

from pathlib import Path

from config.resource_manager.schema import ResourceManagerConfiguration
from process.composition import Composition
from process.runner import Groups
from webhooks.clients import Clients
from webhooks.routes import disabled, enabled, public, routes
from webhooks.server import Requests, serving_check, webhook_server
from webhooks.state import State
from webhooks.tls import ServingCertificate, directory_of


def compose(base: Composition[ResourceManagerConfiguration]) -> Groups:
    """Raises: OSError: the address of a server is taken."""
    config, address = base.config, base.config.server.webhooks
    state = State(base.clusters["source"], base.clusters["target"])
    table = routes(config, state)
    client_ca = address.tls.client_ca_file
    certificate = ServingCertificate(directory_of(address.tls.server_cert_dir), Path(client_ca) if client_ca else None)
    clients = Clients(address.tls.client_names) if client_ca else None
    server = webhook_server(
        Requests(enabled(table), disabled(table), clients=clients, public=public(table)),
        host=address.bind_address,
        port=address.port,
        tls=certificate.context,
        grace_period=config.graceful_shutdown_timeout,
    )
    server.bind()
    checks = [serving_check("webhook-server", server)]
    return base.groups(checks=checks, caches=[state], ready=[certificate], work=[server])
