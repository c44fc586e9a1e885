"""The bases for kustomize as they are released: those of the checkout, with the image that the release has."""

import re
from pathlib import Path

ARTIFACT_TYPE = "application/vnd.gardener-resource-manager-python.manifests.v1"
_IMAGE = re.compile(rb"^- name: resource-manager\n  newTag: \S+$", re.MULTILINE)


def bases(directory: Path, *, repository: str, tag: str, digest: str) -> dict[str, bytes]:
    """The files by their paths.

    Args:
        directory: of the bases; paths are below it.
        repository: of the image.
        tag: of the image.
        digest: of the image; empty if it is not known, as in a dry run, where the tag has to do.
    """
    version = f"digest: {digest}" if digest else f"newTag: {tag}"
    image = f"- name: resource-manager\n  newName: {repository}\n  {version}".encode()
    return {
        str(path.relative_to(directory)): _IMAGE.sub(image, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
