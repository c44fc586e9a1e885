"""Packs files as an OCI artifact: an archive of an image layout, as `oras` and Flux read it.

The same files make the same bytes, and so the same digest.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"


def packed(
    files: Mapping[str, bytes], *, tag: str, artifact_type: str, annotations: Mapping[str, str]
) -> tuple[bytes, str]:
    """The archive of a layout with one artifact, and the digest of that.

    Args:
        files: by their paths; they become one layer.
        tag: by which tools find the artifact in the layout.
        artifact_type: a media type that says what this is.
        annotations: of the artifact.
    """
    blobs: dict[str, bytes] = {}

    def stored(media_type: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": artifact_type,
        "config": stored(EMPTY, b"{}"),
        "layers": [stored(LAYER, gzip.compress(_archive(files), mtime=0))],
        "annotations": dict(sorted(annotations.items())),
    }
    descriptor = stored(MANIFEST, _json(manifest))
    named = {**descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
    layout = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    return _archive({**layout, **blobs}), str(descriptor["digest"])


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _archive(files: Mapping[str, bytes]) -> bytes:
    """In a fixed order, without owners and times."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
