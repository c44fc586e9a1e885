"""Parts of the server of tokens."""

import asyncio
from pathlib import Path

from process.clusters import Cluster
from process.composition import Parts
from process.configuration.blocks import HTTPServer
from webhooks.garden.access import Access
from webhooks.server import serving_check
from webhooks.tls import ServingCertificate
from webhooks.tokens.front_proxies import FrontProxies
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
    trust = _Trust(proxies, certificate)
    return Parts(checks=[serving_check("token-server", server)], ready=[trust], serving=[server])


class _Trust:
    """Loads the certificate after the authorities of the front proxies, which it needs."""

    name = "trust of the token server"

    def __init__(self, proxies: FrontProxies, certificate: ServingCertificate) -> None:
        self._proxies, self._certificate = proxies, certificate

    async def start(self) -> None:
        await self._proxies.look()
        await self._certificate.start()

    async def wait(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._proxies.follow())
            tasks.create_task(self._certificate.wait())

    async def stop(self) -> None:
        pass
