"""Operations that are not supported, which are refused before anything is changed."""

from components.registry import images_of_workers
from config.gardenlet.schema import KUBERNETES_PROGRAMS, GardenletConfiguration
from gardener.garden.shoots import workers
from gardener.operations import DELETE, MIGRATE
from kube.objects import Object, spec


def unsupported(config: GardenletConfiguration, shoot: Object, kind: str) -> str:
    """Reason why an operation can't be carried out; empty if it can. Args: kind: of operation."""
    if kind not in {DELETE, MIGRATE}:
        images = config.images
        if not images.resource_manager:
            return "images.resourceManager is not set in the configuration of the gardenlet; set it"
        if not images.kubernetes and set(KUBERNETES_PROGRAMS) - images.programs.keys():
            return (
                "images.kubernetes is not set in the configuration of the gardenlet; set it, or all images of "
                "images.programs"
            )
    if workers(spec(shoot)) and kind not in {DELETE, MIGRATE}:
        missing = [each for each in images_of_workers(config.omit.shoots) if not config.images.workers.get(each)]
        if missing:
            return f"images.workers in the configuration of the gardenlet lacks {', '.join(missing)}; add them"
    return ""
