"""Installation of a gardenlet in a cluster: a chart, its values, and credentials if it has none yet.

The chart is rendered before anything is changed: a chart that can't be rendered leaves the gardenlet intact.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass

from agent.gardenlet.bootstrap.rules.certificate import Life
from agent.gardenlet.bootstrap.rules.kubeconfig import KEY
from agent.gardenlet.bootstrap.stored import of_content
from agent.gardenlet.common.charts.helm import ChartError, Helm, Release
from agent.gardenlet.common.charts.program import HelmError
from agent.gardenlet.managed_seeds.installation.credentials import Credentials, Owner
from agent.gardenlet.managed_seeds.installation.own_chart import NAME
from agent.gardenlet.managed_seeds.installation.rules import bootstrap, values
from agent.gardenlet.managed_seeds.installation.rules.rollout import with_images
from agent.gardenlet.managed_seeds.installation.target import NAMESPACE, Target
from kube.objects import Key, Object, key, string_map, uid
from kube.resources import DEPLOYMENTS, SECRETS
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.server_version import server_version
from kube.yaml import Budget, DialectError, load

_MOST_VALUES = 100_000
_KUBECONFIG, _BOOTSTRAP = "gardenlet-kubeconfig", "gardenlet-kubeconfig-bootstrap"

Renewing = Callable[[], None]
"""Called when the present kubeconfig is deleted because of a requested renewal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A desired gardenlet.

    Attributes:
        archive: the chart.
        deployment: as in the object.
        config: its configuration, without kubeconfigs.
        owner: of the credentials.
        seed: its Seed, if there is one.
        renews: whether a renewal of the kubeconfig is requested.
        renewing: called when it is renewed.
        image: of containers for which neither object nor chart names one.
    """

    archive: bytes
    deployment: Object
    config: Object
    owner: Owner
    seed: Object | None
    renews: bool
    renewing: Renewing
    image: str


@dataclass(eq=False, slots=True, kw_only=True)
class Installer:
    helm: Helm
    credentials: Credentials

    async def objects(self, wanted: Wanted, target: Target) -> list[Object]:
        """Return the objects to apply; an expired kubeconfig, or one to renew, has been deleted.

        Raises:
            ReconcileError: the chart can't be rendered, or the configuration is invalid.
        """
        version = await server_version(target.client)
        if wanted.owner.way == bootstrap.NONE:
            config = values.without_bootstrap(wanted.config)
            return await self._render(wanted, config, version)
        secret = values.reference(wanted.config, values.SECRET, _KUBECONFIG)
        config = values.with_bootstrap(wanted.config, secret=secret, bootstrap=None)
        rendered = await self._render(wanted, config, version)
        if await self._has_kubeconfig(wanted, secret, target.client):
            return rendered
        reference = values.reference(wanted.config, values.BOOTSTRAP, _BOOTSTRAP)
        config = values.with_bootstrap(wanted.config, secret=secret, bootstrap=reference)
        content = await self.credentials.kubeconfig(wanted.owner, config)
        return await self._render(wanted, config, version, kubeconfig=content)

    async def _has_kubeconfig(self, wanted: Wanted, where: Object, client: Client) -> bool:
        """Whether there is a usable kubeconfig; an unusable one is deleted."""
        live = await client.find(SECRETS, Key(where["namespace"], where["name"]))
        if live is None:
            return False
        is_over = bootstrap.has_expired(wanted.seed, _life(live), self.credentials.clock())
        if not (is_over or wanted.renews):
            return True
        if wanted.renews and not is_over:
            wanted.renewing()
        await client.delete_if_exists(SECRETS, key(live), uid=uid(live))
        return False

    async def _render(self, wanted: Wanted, config: Object, version: str, *, kubeconfig: str = "") -> list[Object]:
        given = values.values(wanted.deployment, config, kubeconfig=kubeconfig)
        release = Release(name=NAME, namespace=NAMESPACE, values=given, kubernetes=version)
        try:
            manifests = await self.helm.render(wanted.archive, release, chart=str(wanted.owner.key))
        except (ChartError, HelmError) as error:
            raise ReconcileError(f"could not render the chart of gardenlet: {error}") from error
        budget, found = Budget(_MOST_VALUES), []
        for manifest in manifests:
            try:
                obj = load(manifest.text, budget=budget)
            except DialectError as error:
                raise ReconcileError(f"the chart of gardenlet has no object in {manifest.file}: {error}") from error
            if isinstance(obj, dict):
                found.append(with_images(obj, wanted.image) if obj.get("kind") == DEPLOYMENTS.kind else obj)
        return found


def _life(secret: Object) -> Life | None:
    """Validity of the certificate in a Secret; None if it is unreadable."""
    try:
        content = base64.b64decode(string_map(secret.get("data")).get(KEY, ""))
        return of_content(content, origin="of a gardenlet").life
    except (ConfigurationError, ValueError):
        return None
