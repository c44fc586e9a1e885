"""The file of images for a mirror follows from the image vector of a release."""

from pathlib import Path

import pytest

from agent.gardenlet.common.image_overwrites import overwritten
from agent.gardenlet.images import main
from components.registry import images_of_workers
from config.gardenlet.schema import KUBERNETES_PROGRAMS, Images

PREFIX = "registry.example.com/mirror"
VECTOR = """
images:
- {name: gardener-apiserver, repository: a.example.com/releases/apiserver}
- {name: gardener-resource-manager, repository: a.example.com/releases/resource-manager}
- {name: gardener-node-agent, repository: a.example.com/releases/node-agent, resourceId: {name: node-agent}}
- {name: pause-container, repository: "b.example.com:5000/pause", tag: "3.10", labels: [{name: x}]}
- {name: cluster-autoscaler, repository: a.example.com/releases/autoscaler, tag: v1.31.0, targetVersion: ">= 1.31"}
- {name: cluster-autoscaler, repository: a.example.com/releases/autoscaler, tag: v1.30.0, targetVersion: "1.30.x"}
- {name: coredns, repository: b.example.com/coredns/coredns, tag: "sha256:12"}
- {name: hyperkube, repository: a.example.com/releases/hyperkube}
- {name: kube-apiserver, repository: b.example.com/kube-apiserver}
"""


def run(tmp_path: Path, content: str, *arguments: str, versions: tuple[str, ...] = ("1.30.5", "1.31.1")) -> int:
    vector = tmp_path / "containers.yaml"
    vector.write_text(content)
    of_kubernetes = [part for version in versions for part in ("--kubernetes", version)]
    return main([str(vector), "--prefix", f"{PREFIX}/", "--tag", "v1.104.0", *of_kubernetes, *arguments])


def test_the_gardenlet_uses_the_mirrored_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, VECTOR) == 0
    output = capsys.readouterr()
    images, ignored = overwritten(Images(), output.out, for_workers=images_of_workers)
    assert ignored == []
    assert images.pause == f"{PREFIX}/pause:3.10"
    assert images.workers == {
        "gardener-node-agent": f"{PREFIX}/releases/node-agent:v1.104.0",
        "pause": f"{PREFIX}/pause:3.10",
        "cluster-autoscaler": f"{PREFIX}/releases/autoscaler:v1.31.0",
        "coredns": f"{PREFIX}/coredns/coredns@sha256:12",
        "hyperkube": f"{PREFIX}/releases/hyperkube",
    }
    assert images.programs == {"kube-apiserver": f"{PREFIX}/kube-apiserver"}
    assert images.resource_manager == ""
    lacking = output.err.removeprefix("not in the image vector: ").partition(";")[0].split(", ")
    assert {"images.resourceManager", "images.istioProxy", "images.workers.envoy"} <= set(lacking)
    assert not {"images.pause", "images.workers.coredns", "images.programs.kube-apiserver"} & set(lacking)
    assert {f"images.programs.{name}" for name in KUBERNETES_PROGRAMS[1:]} <= set(lacking)


def test_the_oldest_selection_of_an_image_is_for_the_newest_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, VECTOR, versions=("1.30.5",)) == 0
    assert "tag: v1.30.0" in capsys.readouterr().out


def test_all_that_has_to_be_copied_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, VECTOR, "--mirror") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"a.example.com/releases/node-agent:v1.104.0 {PREFIX}/releases/node-agent:v1.104.0",
        f"b.example.com:5000/pause:3.10 {PREFIX}/pause:3.10",
        f"a.example.com/releases/autoscaler:v1.31.0 {PREFIX}/releases/autoscaler:v1.31.0",
        f"b.example.com/coredns/coredns@sha256:12 {PREFIX}/coredns/coredns@sha256:12",
        *(
            f"{source}:v{version} {PREFIX}/{path}:v{version}"
            for source, path in (
                ("a.example.com/releases/hyperkube", "releases/hyperkube"),
                ("b.example.com/kube-apiserver", "kube-apiserver"),
            )
            for version in ("1.30.5", "1.31.1")
        ),
    ]


@pytest.mark.parametrize(
    ("content", "versions", "message"),
    [
        ("images: []", ("1.31.1",), "none of the images"),
        ("a: [", ("1.31.1",), "not valid YAML"),
        (VECTOR + "- {name: prometheus, repository: c.example.com/pause}\n", ("1.31.1",), "both be mirrored as"),
        (VECTOR, ("newest",), "--kubernetes newest is not a version"),
    ],
)
def test_what_can_not_be_mirrored_is_an_error(
    content: str, versions: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, content, versions=versions) > 0
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
