"""A run of the tests ends with what it cost, of all processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kit.eventually import eventually
from localprocesses import supervisor

BURNS = "import time\nwhile time.process_time() < 2: pass"
TEST = f"import subprocess, sys\ndef test_a():\n    subprocess.run([sys.executable, '-c', {BURNS!r}])\n"
COST = re.compile(r"^CPU: \d+ s: (\d+) s of tests and programs, (\d+) s of (\d+) control planes$", re.MULTILINE)


def test_the_last_line_states_what_all_processes_took(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TEST)
    here = {name: value for name, value in os.environ.items() if name != supervisor.CPU_FILE}
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, "-m", "pytest", "-p", "kit.cost", "-n", "1", "--rootdir", str(tmp_path), "test_a.py"]
    run = subprocess.run(
        command, env={**here, "PYTHONPATH": paths}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = COST.search(run.stdout.splitlines()[-1])
    assert found is not None, run.stdout
    assert int(found[1]) >= 2, "the program that the test starts took as much"
    assert (found[2], found[3]) == ("0", "0")


def test_a_supervisor_notes_what_it_and_its_components_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, costs = tmp_path / "state", tmp_path / "costs"
    (state / "logs").mkdir(parents=True)
    monkeypatch.setenv(supervisor.CPU_FILE, str(costs))
    supervisor.launch(state, owner=os.getpid())
    supervisor.ask(state, "start", name="busy", command=[sys.executable, "-c", f"{BURNS}\nopen('done', 'w')"])
    eventually((state / "done").exists, "the component to end")
    supervisor.ask(state, "shutdown")
    eventually(lambda: costs.exists() and costs.stat().st_size > 0, "the supervisor to end")
    assert float(costs.read_text()) >= 2
