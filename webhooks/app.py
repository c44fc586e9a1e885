"""What the admission server consists of, beside what all programs do; see `process.composition`.

    caches          what handlers read of the clusters; with them, the certificate is loaded
    work            the HTTPS server

There is no leader: every replica serves.
"""

from config.resource_manager.schema import ResourceManagerConfiguration
from process.composition import Composition
from process.runner import Groups
from webhooks.routes import disabled, enabled, routes
from webhooks.server import Requests, serving_check, webhook_server
from webhooks.state import State
from webhooks.tls import ServingCertificate, directory_of


def compose(base: Composition[ResourceManagerConfiguration]) -> Groups:
    """Raises: OSError: the address of a server is taken."""
    config, address = base.config, base.config.server.webhooks
    state = State(base.clusters["source"], base.clusters["target"])
    table = routes(config, state)
    certificate = ServingCertificate(directory_of(address.tls.server_cert_dir))
    server = webhook_server(
        Requests(enabled(table), disabled(table)),
        host=address.bind_address,
        port=address.port,
        tls=certificate.context,
        grace_period=config.graceful_shutdown_timeout,
    )
    server.bind()
    checks = [serving_check("webhook-server", server)]
    return base.groups(checks=checks, caches=[state], ready=[certificate], work=[server])
