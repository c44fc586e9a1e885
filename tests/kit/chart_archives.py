"""Packed charts of helm, made of texts."""

import base64
import io
import tarfile
from collections.abc import Mapping

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: conf
  namespace: {{ .Release.Namespace }}
data:
  word: {{ .Values.word | quote }}
"""
_ABOUT = {"Chart.yaml": "apiVersion: v1\nname: c\nversion: 0.1.0\n", "values.yaml": "word: hello\n"}


def packed(files: Mapping[str, str] | None = None, *, links: Mapping[str, str] | None = None) -> bytes:
    """Args: files: of the chart `c`, beside what every chart has; none: a ConfigMap. links: symbolic ones."""
    content = {**_ABOUT, **({"templates/a.yaml": CONFIG_MAP} if files is None else files)}
    links = {f"c/{name}": target for name, target in (links or {}).items()}
    return archive({f"c/{name}": text for name, text in content.items()}, links=links)


def raw_chart(files: Mapping[str, str] | None = None) -> str:
    """As a ControllerDeployment has it."""
    return base64.b64encode(packed(files)).decode()


def archive(files: Mapping[str, str], *, links: Mapping[str, str] | None = None) -> bytes:
    """Args: files: by their paths, all that are in it. links: symbolic ones."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        for path, target in (links or {}).items():
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return written.getvalue()
