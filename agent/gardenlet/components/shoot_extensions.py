"""What a Shoot asks of extensions that are of no other kind: an Extension for each type in `spec.extensions`."""

from collections.abc import Iterable

from agent.gardenlet.components.parts import made
from gardener.api.extensions import EXTENSIONS
from kube.objects import Object, mappings, spec, text


def objects(shoot: Object, namespace: str, *, also: Iterable[str] = ()) -> list[Object]:
    """By type.

    Args:
        shoot: in the garden.
        namespace: of the Shoot, in the seed.
        also: types that every Shoot has, unless it says that one is disabled.
    """
    given = {text(each.get("type")): each for each in mappings(spec(shoot).get("extensions"))}
    wanted = {**{each: {} for each in also}, **given}
    return [_extension(kind, each, namespace) for kind, each in sorted(wanted.items()) if not _is_off(each)]


def _is_off(extension: Object) -> bool:
    return extension.get("disabled") is True


def _extension(kind: str, extension: Object, namespace: str) -> Object:
    config = extension.get("providerConfig")
    fields = {"type": kind, **({"providerConfig": config} if config is not None else {})}
    return made(EXTENSIONS, kind, namespace=namespace, spec=fields)
