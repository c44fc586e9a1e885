"""Each command in docs/shoots-on-this-computer.md works as it stands, from top to bottom, in a fresh checkout."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(900)]

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "shoots-on-this-computer.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
END = "devcluster down"


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    for name in (".venv", "devcluster"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (end,) = [each for each in BLOCKS if END in each]
    script = "\n".join(each for each in BLOCKS if each != end)
    with tempfile.TemporaryDirectory() as clusters:  # those of the page meet no other of their name
        try:
            printed = _run(script, tmp_path, clusters)
            assert re.search(r"^kube-system +Active ", printed, re.MULTILINE), printed
            assert re.search(r"deployment\.apps/kube-apiserver +2/2 ", printed), printed
            assert 'shoot.core.gardener.cloud "rose" deleted' in printed
        finally:
            _run(end, tmp_path, clusters)
        assert not [each for each in Path(clusters).rglob("*") if each.is_socket()]


def _run(script: str, checkout: Path, clusters: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "TMPDIR": clusters, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout
