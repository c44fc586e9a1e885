"""One pass over a NamespacedCloudProfile: its status says what Shoots choose from."""

from agent.controller_manager.common.protection import Protection
from gardener.garden import profiles
from gardener.garden.resources import NAMESPACED_CLOUD_PROFILES
from gardener.garden.users import parents
from kube.bodies import digest
from kube.cache import Store
from kube.client import Client
from kube.controller import Result
from kube.objects import Key, Object, is_deleting, mapping, metadata, spec


class Reconciler:
    """Args: parents: the CloudProfiles."""

    def __init__(
        self, *, client: Client, profiles: Store[Object], parents: Store[Object], protection: Protection
    ) -> None:
        self._client = client
        self._profiles = profiles
        self._parents = parents
        self._protection = protection

    async def reconcile(self, name: Key) -> Result:
        result = await self._protection.reconcile(name)
        profile = self._profiles.get(name)
        if profile is not None and not is_deleting(profile):
            await self._render(profile)
        return result

    async def _render(self, profile: Object) -> None:
        parent = next((found for each in parents(profile) if (found := self._parents.get(each))), None)
        if parent is None:
            return  # it is rendered when the parent comes
        content, generation = profiles.merged(spec(parent), spec(profile)), metadata(profile).get("generation")
        status = mapping(profile.get("status"))
        if profile.get("rendered") == digest(content).hex() and status.get("observedGeneration") == generation:
            return
        body = {field: value for field, value in profile.items() if field != "rendered"}
        body["status"] = {**status, "cloudProfileSpec": content, "observedGeneration": generation}
        # A patch would leave fields that are not in the parent any more.
        self._profiles.observe(await self._client.replace(NAMESPACED_CLOUD_PROFILES, body, subresource="status"))
