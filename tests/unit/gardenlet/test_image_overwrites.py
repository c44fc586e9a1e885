"""Images of a file that the environment names take the place of configured ones."""

from pathlib import Path

import pytest

from agent.gardenlet.common.image_overwrites import Overwrites, overwrites, overwritten
from components.registry import images_of_workers
from config.gardenlet import decode
from config.gardenlet.schema import Images
from localprovider.runner.addresses import Here
from localprovider.runner.commands import GARDENLET, PROGRAMS
from localprovider.runner.flags import variables

CONFIGURED = Images(
    resource_manager="r.example.com/manager:v1@sha256:12",
    pause="r.example.com/pause:3.9",
    workers={"pause": "r.example.com/pause:3.9", "coredns": "r.example.com/coredns:v1", "hyperkube": "r/hyperkube"},
)


def entry(name: str, **fields: str) -> str:
    return f"- {{name: {name}, " + ", ".join(f"{key}: '{value}'" for key, value in fields.items()) + "}\n"


def found(*entries: str) -> Images:
    images, ignored = overwritten(CONFIGURED, "images:\n" + "".join(entries), for_workers=images_of_workers)
    assert ignored == []
    return images


@pytest.mark.parametrize(
    ("fields", "image"),
    [
        ({"repository": "m.example.com/pause", "tag": "3.10"}, "m.example.com/pause:3.10"),
        ({"repository": "m.example.com:5000/pause", "tag": "sha256:34"}, "m.example.com:5000/pause@sha256:34"),
        ({"repository": "m.example.com:5000/pause"}, "m.example.com:5000/pause:3.9"),
        ({"ref": "m.example.com/pause:3.10@sha256:34"}, "m.example.com/pause:3.10@sha256:34"),
    ],
)
def test_an_image_is_the_one_of_the_file_with_the_tag_that_was_there_unless_it_has_one(
    fields: dict[str, str], image: str
) -> None:
    images = found(entry("pause-container", **fields))
    assert (images.pause, images.workers["pause"]) == (image, image)
    assert images.workers["coredns"] == CONFIGURED.workers["coredns"]


def test_what_a_release_names_by_its_version_keeps_its_tag_from_there() -> None:
    images = found(
        entry("gardener-resource-manager", repository="m/manager"),
        entry("hyperkube", repository="m/hyperkube", tag="v1.30.1"),
        entry("kube-apiserver", repository="m/kube-apiserver"),
        entry("vpn-server", repository="m/vpn", tag="1"),
    )
    assert images.resource_manager == "m/manager:v1@sha256:12"
    assert images.workers["hyperkube"] == "m/hyperkube"
    assert images.programs == {"kube-apiserver": "m/kube-apiserver"}
    assert images.workers["vpn-seed-server"] == "m/vpn:1"


def test_what_counts_for_nothing_is_named() -> None:
    entries = [
        entry("coredns", repository="m/coredns", targetVersion="< 1.30"),
        entry("alertmanager", repository="m/a"),
    ]
    images, ignored = overwritten(CONFIGURED, "images:\n" + "".join(entries), for_workers=images_of_workers)
    assert images == CONFIGURED
    assert [each.partition(":")[0] for each in ignored] == ["coredns", "alertmanager"]
    assert "targetVersion" in ignored[0]


@pytest.mark.parametrize("content", ["images:\n- {name: pause-container}\n", "images:\n- {repository: r}\n", "a: ["])
def test_what_is_no_such_file_is_an_error_that_names_the_variable(content: str) -> None:
    with pytest.raises(ValueError, match="IMAGEVECTOR_OVERWRITE"):
        overwritten(CONFIGURED, content, for_workers=images_of_workers)


def test_an_image_that_no_shoot_uses_is_an_error_that_names_it() -> None:
    configured = Images(workers={"core-dns": "r.example.com/coredns:v1"})
    with pytest.raises(ValueError, match=r"images\.workers in the configuration has core-dns, .*, coredns, "):
        overwritten(configured, "", for_workers=images_of_workers)


def test_without_a_file_nothing_changes() -> None:
    assert overwritten(CONFIGURED, "", for_workers=images_of_workers) == (CONFIGURED, [])
    assert overwrites({}).values == {}


def test_both_files_are_handed_on_as_they_are(tmp_path: Path) -> None:
    for name in ("images", "components"):
        (tmp_path / name).write_text(f"{name}: [] # of an operator\n")
    environment = {
        "IMAGEVECTOR_OVERWRITE": str(tmp_path / "images"),
        "IMAGEVECTOR_OVERWRITE_COMPONENTS": str(tmp_path / "components"),
    }
    assert overwrites(environment).values == {
        "imageVectorOverwrite": "images: [] # of an operator\n",
        "componentImageVectorOverwrites": "components: [] # of an operator\n",
    }
    with pytest.raises(ValueError, match=f"{tmp_path}/missing, which IMAGEVECTOR_OVERWRITE names, can't be read"):
        overwrites({"IMAGEVECTOR_OVERWRITE": str(tmp_path / "missing")})
    assert Overwrites().values == {}


def test_a_gardenlet_on_this_computer_finds_its_file(tmp_path: Path) -> None:
    env = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": "api.example.com"},
        {"name": "IMAGEVECTOR_OVERWRITE", "value": "/charts_overwrite/images_overwrite.yaml"},
    ]
    here = Here(tmp_path, ["/charts_overwrite", "/etc"], "garden", {})
    assert variables({"env": env}, PROGRAMS[GARDENLET].variables, here) == {
        "IMAGEVECTOR_OVERWRITE": f"{tmp_path}/charts_overwrite/images_overwrite.yaml"
    }


def test_programs_are_those_of_kubernetes() -> None:
    assert decode("images: {programs: {kube-proxy: m/kube-proxy}}").config.images.programs == {
        "kube-proxy": "m/kube-proxy"
    }
