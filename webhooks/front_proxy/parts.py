"""Parts of the front proxy."""

from config.webhooks.schema import FrontProxy as Settings
from process.clusters import Cluster
from process.composition import Parts
from webhooks.front_proxy.server import PROTOCOLS, FrontProxy
from webhooks.front_proxy.upstream import Upstream
from webhooks.server import serving_check
from webhooks.tls import ServingCertificate, directory_of
from webhooks.tokens.front_proxies import FrontProxies, Trust, Users


def parts(settings: Settings, *, certificates: str, grace_period: float, garden: Cluster) -> Parts:
    """Return the parts of a front proxy.

    Args:
        settings: its part of the configuration file.
        certificates: directory with the serving certificate, if the settings name none.
        grace_period: seconds that the program has to stop.
        garden: cluster of the API server.
    """
    proxies = FrontProxies(garden.client)
    shown = directory_of(settings.client_cert_dir) if settings.client_cert_dir else None
    certificate = ServingCertificate(
        directory_of(settings.server_cert_dir or certificates), Users(proxies) if shown else None, protocols=PROTOCOLS
    )
    server = FrontProxy(
        host=settings.bind_address,
        port=settings.port,
        tls=certificate.context,
        proxies=proxies,
        upstream=Upstream(garden.transport, shown),
        linger=0.5 * grace_period,
        now=garden.clock,
    )
    trust = Trust("trust of the front proxy", proxies, certificate)
    return Parts(checks=[serving_check("front-proxy", server)], ready=[trust], serving=[server])
