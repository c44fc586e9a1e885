"""The CA bundle of the target connection, wherever it is."""

import base64
from pathlib import Path

import pytest

from agent.shared.token_requestor.authority import Authority
from kit import kubeconfigs
from kit.clock import FakeClock


def kubeconfig(path: Path, **cluster: str) -> str:
    document = kubeconfigs.kubeconfig(cluster=cluster)
    document["clusters"].insert(0, {"name": "other", "cluster": {}})
    return str(kubeconfigs.written(path, document))


INLINE = base64.b64encode(b"inline").decode()


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"certificate-authority-data": INLINE, "certificate-authority": "unused"}, b"inline"),
        ({"certificate-authority": "ca.crt"}, b"file"),  # beside the kubeconfig
        ({}, b""),
    ],
)
def test_it_is_in_the_kubeconfig_or_in_a_file_that_it_names(
    tmp_path: Path, cluster: dict[str, str], expected: bytes
) -> None:
    (tmp_path / "ca.crt").write_bytes(b"file")
    assert Authority(kubeconfig(tmp_path / "kc", **cluster))() == expected


@pytest.mark.parametrize("content", ["", "[", "a: b", "[]", "clusters: 1\ncurrent-context: c\ncontexts: [[]]"])
def test_what_can_not_be_read_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "kc").write_text(content)
    assert Authority(str(tmp_path / "kc"))() == b""
    assert Authority(str(tmp_path / "missing"))() == b""


def test_it_is_read_again_now_and_then_and_kept_while_it_can_not_be_read(tmp_path: Path) -> None:
    file, clock = tmp_path / "ca.crt", FakeClock(0.0)
    file.write_bytes(b"first")
    authority = Authority("", in_cluster=file, now=clock)
    assert authority() == b"first"
    file.write_bytes(b"second")
    assert authority() == b"first"
    clock.now = 60
    assert authority() == b"second"
    file.unlink()
    clock.now = 120
    assert authority() == b"second"
