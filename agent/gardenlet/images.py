"""The file of images of a gardenlet, from the image vector of a release and the prefix of a mirror.

    python -m agent.gardenlet.images containers.yaml --prefix PREFIX --tag v1.104.0 --kubernetes 1.31.1 > images.yaml
    python -m agent.gardenlet.images ... --mirror    # what to copy: SOURCE TARGET

The result has one entry for each image that a gardenlet uses, for the variable `IMAGEVECTOR_OVERWRITE` or the value
`imageVectorOverwrite` of the chart. A target is the prefix with the path of the source; its registry is left out.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from agent.gardenlet.common import image_overwrites
from components.registry import images_of_workers
from gardener.garden.versions import Version, parse_constraint, parse_version
from kube.objects import Object, mapping, mappings, text
from kube.visible_text import LINES, printable
from kube.yaml import Budget, DialectError, Dumper, load

_CONDITIONS = ("targetVersion", "runtimeVersion")
_MOST_VALUES = 100_000
_OWN = "gardener-resource-manager"
"""The image of this project takes its place: `images.resourceManager` in the configuration."""


class ImagesError(Exception):
    """The image vector can't be used; the message includes the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Attributes: tag: empty if the version of Kubernetes is the tag."""

    name: str
    source: str
    target: str
    tag: str


def chosen(content: str, *, prefix: str, tag: str, newest: Version) -> list[Image]:
    """Images that a gardenlet uses, in the order of the vector.

    Args:
        content: image vector.
        prefix: registry and path of the mirror.
        tag: of images that the vector has without one, since they are built with the release.
        newest: version of Kubernetes for entries that depend on one.

    Raises:
        ImagesError: the vector is invalid, or two sources have the same target.
    """
    try:
        entries = mappings(mapping(load(content, budget=Budget(_MOST_VALUES))).get("images"))
    except DialectError as error:
        raise ImagesError(f"the image vector is not valid YAML: {error}; correct it") from error
    wanted, versioned = image_overwrites.names(images_of_workers()), image_overwrites.versioned()
    found: dict[str, Image] = {}
    for entry in entries:
        name = text(entry.get("name"))
        if name not in wanted - {_OWN} or name in found or not _fits(entry, newest):
            continue
        source = text(entry.get("repository"))
        target = f"{prefix}/{_path(source)}"
        own_tag = "" if name in versioned else text(entry.get("tag")) or tag
        found[name] = Image(name=name, source=source, target=target, tag=own_tag)
    if not found:
        raise ImagesError("the image vector has none of the images that a gardenlet uses; name the one of a release")
    _check_targets(found.values())
    return list(found.values())


def _fits(entry: Object, newest: Version) -> bool:
    return all(parse_constraint(text(entry[each]))(newest) for each in _CONDITIONS if entry.get(each))


def _path(repository: str) -> str:
    """Strip the registry, which has a dot or a port."""
    first, slash, rest = repository.partition("/")
    return rest if slash and ("." in first or ":" in first or first == "localhost") else repository


def _check_targets(images: Iterable[Image]) -> None:
    sources: dict[str, str] = {}
    for each in images:
        if sources.setdefault(each.target, each.source) != each.source:
            raise ImagesError(
                f"{sources[each.target]} and {each.source} would both be mirrored as {each.target}; mirror one of them "
                "under another path, and correct its entry"
            )


def file_of(images: Iterable[Image]) -> str:
    entries = [
        {"name": each.name, "repository": each.target, **({"tag": each.tag} if each.tag else {})} for each in images
    ]
    return yaml.dump({"images": entries}, Dumper=Dumper, sort_keys=False)


def copies(images: Iterable[Image], versions: Sequence[str]) -> Iterator[str]:
    """Lines `SOURCE TARGET`, without repetitions. Args: versions: of Kubernetes."""
    lines = (
        f"{each.source}{joined} {each.target}{joined}"
        for each in images
        for tag in ([each.tag] if each.tag else [f"v{version}" for version in versions])
        for joined in [f"{'@' if ':' in tag else ':'}{tag}"]
    )
    yield from dict.fromkeys(lines)


def missing(images: Iterable[Image]) -> list[str]:
    """Fields of the configuration that no image of the vector sets."""
    return image_overwrites.unset([each.name for each in images], images_of_workers())


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    versions: dict[Version, str] = {}
    for each in options.kubernetes:
        version = parse_version(each.removeprefix("v"))
        if version is None:
            print(f"error: --kubernetes {printable(each)} is not a version; write one such as 1.31.1", file=sys.stderr)
            return 2
        versions[version] = each.removeprefix("v")
    try:
        content = options.vector.read_text()
        images = chosen(content, prefix=options.prefix.rstrip("/"), tag=options.tag, newest=max(versions))
    except (OSError, ValueError, ImagesError) as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 1
    written = (
        "".join(f"{each}\n" for each in copies(images, list(versions.values()))) if options.mirror else file_of(images)
    )
    sys.stdout.write(printable(written, keep=LINES))
    if lacking := missing(images):
        print(
            f"not in the image vector: {printable(', '.join(lacking))}; set them in the configuration", file=sys.stderr
        )
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m agent.gardenlet.images", description="Write the file of images of a gardenlet."
    )
    made.add_argument("vector", type=Path, metavar="FILE", help="image vector of a release of Gardener")
    made.add_argument("--prefix", required=True, help="registry and path of the mirror, such as HOST/PATH")
    made.add_argument("--tag", required=True, help="tag of the release, for images that the vector has without one")
    made.add_argument(
        "--kubernetes",
        action="append",
        required=True,
        metavar="VERSION",
        help="version of Kubernetes in your CloudProfiles; repeatable; the newest one selects among several images",
    )
    made.add_argument("--mirror", action="store_true", help="print SOURCE and TARGET of all images instead")
    return made


if __name__ == "__main__":
    sys.exit(main())
