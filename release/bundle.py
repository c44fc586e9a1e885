"""The released manifests for kustomize: those of the checkout, with the image of the release."""

import re
from pathlib import Path

ARTIFACT_TYPE = "application/vnd.gardener-resource-manager-python.manifests.v1"
_IMAGE = re.compile(rb"^- name: resource-manager\n  newTag: \S+$", re.MULTILINE)


def manifests(directory: Path, *, repository: str, tag: str, digest: str) -> dict[str, bytes]:
    """Files by their paths, which begin with `manifests/`, as in the documentation.

    Args:
        directory: directory of the manifests.
        repository: repository of the image.
        tag: tag of the image.
        digest: digest of the image; empty if no registry has it: then the tag is named.
    """
    version = f"digest: {digest}" if digest else f"newTag: {tag}"
    image = f"- name: resource-manager\n  newName: {repository}\n  {version}".encode()
    return {
        f"manifests/{path.relative_to(directory)}": _IMAGE.sub(image, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
