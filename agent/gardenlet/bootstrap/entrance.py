"""Steps into the garden; a process that died may have completed any number of them."""

from agent.gardenlet.bootstrap import seed_configuration
from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.bootstrap_credentials import finish
from agent.gardenlet.bootstrap.left_over_operations import LeftOverOperations
from agent.gardenlet.bootstrap.registration import Registration
from agent.gardenlet.bootstrap.rotation import GARDEN, Rotation
from kube.errors import KubeError
from kube.objects import Object
from kube.runtime.server_version import server_version
from process.clusters import Endpoint
from process.runner import StartError


async def enter(access: GardenAccess, configured: Object) -> Rotation:
    """Connect to the garden, and return the rotation that keeps the credentials valid, not started yet.

    It waits as long as there are no credentials, or the garden does not respond. `configured` is the Seed.

    Raises:
        StartError: a human must correct something.
    """
    try:
        return await _enter(access, configured)
    except KubeError as error:
        raise StartError(f"gardenlet of seed {access.seed_name} can't start: {error}") from error


async def _enter(access: GardenAccess, configured: Object) -> Rotation:
    seed, pace = access.seed.client, access.pace
    access.credentials.is_entering = True
    await seed_configuration.check(seed, configured, pace=pace)
    kubeconfig = await access.obtain()
    garden = access.clusters.open(Endpoint((GARDEN,), kubeconfig.connection, access.settings)).client
    await pace.patiently("reach the garden", lambda: server_version(garden))
    access.credentials.is_entering = False
    registered = await Registration(garden=garden, seed=seed, configured=configured, pace=pace).register()
    await finish(access, garden)
    await LeftOverOperations(garden=garden, seed_name=access.seed_name, pace=pace).abort()
    return Rotation(access=access, kubeconfig=kubeconfig, seed=registered)
