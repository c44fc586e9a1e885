"""Prometheus takes the rules of a seed's servers, computes what they are to compute, and fires its alerts.

Skipped without `promtool`.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from components.prometheus import computed
from kube.objects import Object
from kube.yaml import Dumper

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs the program promtool")
RULES: dict[str, list[Object]] = {
    "of-namespaces": computed.of_namespaces(),
    "metering": computed.metering(),
    "metered": computed.metered(),
    "metered-by-day": computed.metered_by_day(),
    "alerts": computed.alerts(),
}


def promtool(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["promtool", *arguments], cwd=directory, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_of_a_seed_say_what_is_used_and_what_is_wrong(tmp_path: Path) -> None:
    groups = [{"name": name, "interval": "1m", "rules": rules} for name, rules in RULES.items()]
    (tmp_path / "rules.yaml").write_text(yaml.dump({"groups": groups}, Dumper=Dumper, width=1000))
    shutil.copy(Path(__file__).parent / "seed" / "cases.yaml", tmp_path)
    promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    promtool(tmp_path, "test", "rules", "cases.yaml")
