"""A gardenlet gets its certificate by a bootstrap token, and the next one by the certificate.

Token, API server, signer and certificates are real.
"""

import base64
import secrets
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.controller_manager.certificate_signing_request import USAGES, declare
from gardener.api.garden import SEEDS
from gardener.garden.seeds import BOOTSTRAP_GROUP, BootstrapToken
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.kubeconfigs import kubeconfig, written
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.world import connected
from kube.errors import Forbidden, KubeError
from kube.objects import Object, condition
from kube.paths import at
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, SECRETS
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

SEEDS_GROUP = "gardener.cloud:system:seeds"
KEY = ec.generate_private_key(ec.SECP256R1())
_PKCS8 = serialization.PrivateFormat.PKCS8


class Gardenlet:
    def __init__(self, garden: Garden, directory: Path, name: str = "") -> None:
        self.name = name or f"seed-{secrets.token_hex(3)}"
        self.user = f"gardener.cloud:system:seed:{self.name}"
        self._garden = garden
        self._directory = directory

    def bootstrap_kubeconfig(self, identity: str = "", *, group: str = "system:bootstrappers:gardenlet") -> Path:
        identity, secret = identity or secrets.token_hex(3), secrets.token_hex(8)
        data = {"token-id": identity, "token-secret": secret, "usage-bootstrap-authentication": "true"}
        data["auth-extra-groups"] = group
        kind = "bootstrap.kubernetes.io/token"
        name, namespace = f"bootstrap-token-{identity}", "kube-system"
        self._garden.create(SECRETS, name, namespace=namespace, type=kind, stringData=data)
        return self._kubeconfig(f"bootstrap-{identity}", {"token": f"{identity}.{secret}"})

    def kubeconfig(self, certificate: str) -> Path:
        """Args: certificate: as in the status of the request: base64 of PEM."""
        key = KEY.private_bytes(serialization.Encoding.PEM, _PKCS8, serialization.NoEncryption())
        user = {"client-certificate-data": certificate, "client-key-data": base64.b64encode(key).decode()}
        return self._kubeconfig("certificate", user)

    def _kubeconfig(self, name: str, user: Object) -> Path:
        ca = base64.b64encode(self._garden.cluster.ca.encode()).decode()
        config = kubeconfig(user, cluster={"certificate-authority-data": ca}, server=self._garden.cluster.url)
        return written(self._directory / f"{self.name}-{name}.kubeconfig", config)

    def request(self, name: str, *, user: str = "", signer: str = CLIENT) -> Object:
        body = signing_request(user or self.user, organizations=[SEEDS_GROUP], private_key=KEY)
        csr = csr_object(body, name=f"{self.name}-{name}", signer=signer, usages=sorted(USAGES))
        del csr["metadata"]["creationTimestamp"]
        return csr


async def ask(client: Client, csr: Object) -> str:
    """The name of the request; a new token takes a moment to be known."""

    async def created() -> Object:
        return await client.create(CERTIFICATE_SIGNING_REQUESTS, csr)

    made = await soon(created, "the request to be taken", passing=(KubeError,))
    return str(made["metadata"]["name"])


async def certificate(client: Client, name: str) -> str:
    """What the signer made of the request."""

    async def signed() -> str | None:
        found = at(await client.get(CERTIFICATE_SIGNING_REQUESTS, name), "status", "certificate")
        return found if isinstance(found, str) else None

    return str(await soon(signed, "the certificate"))


async def is_decided(client: Client, name: str) -> bool:
    csr = await client.get(CERTIFICATE_SIGNING_REQUESTS, name)
    return condition(csr, "Approved") is not None or condition(csr, "Denied") is not None


async def test_a_bootstrap_token_leads_to_a_certificate_and_that_to_the_next(garden: Garden, tmp_path: Path) -> None:
    gardenlet, other = Gardenlet(garden, tmp_path), Gardenlet(garden, tmp_path)
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        async with connected(gardenlet.bootstrap_kubeconfig()) as bootstrapping:
            stranger = await ask(bootstrapping, gardenlet.request("other-signer", signer="example.com/signer"))
            first = await certificate(bootstrapping, await ask(bootstrapping, gardenlet.request("first")))
        async with connected(gardenlet.kubeconfig(first)) as running:
            assert await running.list(SEEDS) is not None, "a gardenlet may read Seeds"
            stolen = await ask(running, gardenlet.request("stolen", user=other.user))
            second = await certificate(running, await ask(running, gardenlet.request("second")))
            assert second != first
        assert not await is_decided(operator, stranger)
        assert not await is_decided(operator, stolen)


async def test_who_may_not_ask_waits_for_the_right(garden: Garden, tmp_path: Path) -> None:
    gardenlet, user = Gardenlet(garden, tmp_path), f"user-{secrets.token_hex(3)}"
    garden.allow(user, "create", CERTIFICATE_SIGNING_REQUESTS)
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        async with connected(garden.cluster.kubeconfig_for(user)) as stranger:
            name = await ask(stranger, gardenlet.request("asked"))
        again = await ask(operator, gardenlet.request("of-operator"))
        await soon(lambda: is_decided(operator, again), "the request of one who may")
        assert not await is_decided(operator, name)


async def test_a_token_by_which_nodes_join_is_none_of_a_gardenlet(garden: Garden, tmp_path: Path) -> None:
    gardenlet = Gardenlet(garden, tmp_path)
    kubeconfig = gardenlet.bootstrap_kubeconfig(group="system:bootstrappers:kubeadm:default-node-token")

    async def is_refused() -> bool:
        async with connected(kubeconfig) as joining:
            try:
                await joining.create(CERTIFICATE_SIGNING_REQUESTS, gardenlet.request("asked"))
            except Forbidden:
                return True
        return False

    await soon(is_refused, "the token to be known, and refused", passing=(KubeError,))


async def test_a_token_that_names_a_seed_is_valid_for_it_alone(garden: Garden, tmp_path: Path) -> None:
    """Also if it exists. A token without a name is valid for new ones alone."""
    gardenlet, new = Gardenlet(garden, tmp_path, ShootPlace(garden).seed()), Gardenlet(garden, tmp_path)
    own = BootstrapToken(gardenlet.name).extra_groups
    by_itself = BootstrapToken(gardenlet.name, gardenlet.name).extra_groups
    by_another = BootstrapToken(gardenlet.name, new.name).extra_groups
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        names = []
        for number, (group, requested) in enumerate(
            ((BOOTSTRAP_GROUP, gardenlet), (own, new), (by_itself, new), (by_another, gardenlet))
        ):
            async with connected(gardenlet.bootstrap_kubeconfig(group=group)) as another:
                names.append(await ask(another, requested.request(f"refused-{number}")))
        for number, group in enumerate((own, by_itself)):
            async with connected(gardenlet.bootstrap_kubeconfig(group=group)) as bootstrapping:
                name = await ask(bootstrapping, gardenlet.request(f"own-{number}"))
                assert await certificate(bootstrapping, name)
        for name in names:
            assert not await is_decided(operator, name)
