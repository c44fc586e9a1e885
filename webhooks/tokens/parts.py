"""Parts of the server of tokens."""

from pathlib import Path

from process.clusters import Cluster
from process.composition import Parts
from process.configuration.blocks import HTTPServer
from webhooks.garden.access import Access
from webhooks.server import serving_check
from webhooks.tls import ServingCertificate
from webhooks.tokens.front_proxies import FrontProxies, Trust
from webhooks.tokens.identities import IdentityTokens
from webhooks.tokens.issuer import Issuers
from webhooks.tokens.kubeconfigs import Kubeconfigs
from webhooks.tokens.server import TokenRequests, token_server


def parts(address: HTTPServer, *, certificates: Path, grace_period: float, runtime: Cluster, garden: Cluster) -> Parts:
    proxies, issuers = FrontProxies(garden.client), Issuers(runtime.client)
    access = Access(garden.client)
    identities = IdentityTokens(client=garden.client, access=access, issuers=issuers, now=garden.clock)
    kubeconfigs = Kubeconfigs(client=garden.client, access=access, now=garden.clock)
    certificate = ServingCertificate(certificates, proxies)
    server = token_server(
        TokenRequests(proxies, issuers, identities, kubeconfigs),
        host=address.bind_address,
        port=address.port,
        tls=certificate.context,
        grace_period=grace_period,
    )
    trust = Trust("trust of the token server", proxies, certificate)
    return Parts(checks=[serving_check("token-server", server)], ready=[trust], serving=[server])
