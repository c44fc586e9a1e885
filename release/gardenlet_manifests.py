"""The manifests of the gardenlet, written from its chart, so that there is one source of both.

    python -m release.gardenlet_manifests

Labels of Helm are removed, and the configuration is left to kustomize, which makes a ConfigMap of a file.
"""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agent.gardenlet.common.charts.program import found

PROJECT = Path(__file__).resolve().parents[1]
CHART = PROJECT / "agent" / "gardenlet" / "managed_seeds" / "installation" / "chart"
FILES: Mapping[str, str] = {
    "gardenlet.yaml": "base/gardenlet/gardenlet.yaml",
    "leader-election.yaml": "base/gardenlet/leader-election.yaml",
    "network-policy.yaml": "base/gardenlet/network-policy.yaml",
    "role.yaml": "instances/gardenlet/role.yaml",
}
"""Files by the template, with paths below `manifests`."""
_HEAD = "# Written by `make manifests` from the chart in agent/gardenlet/managed_seeds/installation/chart.\n"
_SOURCE = re.compile(r"^---\n# Source: gardenlet/templates/(.*)\n", re.MULTILINE)
_NAMESPACE = "garden"
_OF_HELM = re.compile(
    rf"^ *(?:(?:chart|release|heritage): .*|  namespace: {_NAMESPACE}|reference\.resources\.gardener\.cloud/.*)\n",
    re.MULTILINE,
)
_EMPTY = re.compile(r"^( *)annotations:\n(?!\1 )", re.MULTILINE)
_CONFIG = re.compile(r"gardenlet-configmap-[0-9a-f]+")


def manifests() -> dict[str, str]:
    """Texts of the files, by their paths below `manifests`."""
    command = [str(found()), "template", "gardenlet", str(CHART), "--namespace", _NAMESPACE]
    options = ["--kube-version", "v1.30.0", "--set", "image.repository=resource-manager"]
    done = subprocess.run([*command, *options], check=True, capture_output=True, text=True)
    parts = _SOURCE.split(done.stdout)
    texts = dict.fromkeys(FILES, "")
    for template, text in zip(parts[1::2], parts[2::2], strict=True):
        if template in texts:
            texts[template] += f"---\n{_plain(text)}"
    return {FILES[template]: _HEAD + text.removeprefix("---\n") for template, text in texts.items()}


def _plain(text: str) -> str:
    return _EMPTY.sub("", _CONFIG.sub("gardenlet-config", _OF_HELM.sub("", text)))


if __name__ == "__main__":
    for path, text in manifests().items():
        (PROJECT / "manifests" / path).write_text(text)
