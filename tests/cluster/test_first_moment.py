"""Programs that get a signal before they have begun, as process 1, and without standard streams."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from kit.processes.agent import PROJECT, AgentProcess, configuration
from kit.processes.webhooks import SECCOMP_PROFILE, WebhookProcess

PROGRAMS = ["agent", "webhooks", "image"]
# As a loaded machine or a slow disk would: loading takes its time. In short steps, since a signal that comes between two
# instructions is handled before the next one, and does not interrupt a sleep that begins then.
SLOW = """
import runpy, sys, time

def hook(event, details):
    if event == "import" and details[0] == "aiohttp":
        print("loading", flush=True)
        for _ in range(600):
            time.sleep(0.1)

sys.addaudithook(hook)
sys.argv[1:] = ["--config", {config!r}]
runpy.run_module({program!r}, run_name="__main__")
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The path of a configuration: without one a program ends before it has loaded what it consists of."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configuration("default")))
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_signal_ends_a_program_that_is_still_being_loaded(program: str, number: int, config: str) -> None:
    code = SLOW.format(program=program, config=config)
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(number)
        output, errors = process.communicate(timeout=50)
        assert (process.returncode, output, errors) == (0, b"", b"")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_signal_that_comes_while_python_starts_is_kept(program: str, config: str) -> None:
    """As images and manifests start a program, with a shell in place of the kernel, which sends it at once."""
    send_and_start = 'kill -TERM $$; exec "$@"'
    command = ["sh", "-c", send_and_start, "sh", sys.executable, "-m", program, "--config", config]
    started = subprocess.run(
        ["env", "--block-signal=TERM", *command], cwd=PROJECT, capture_output=True, timeout=60, check=False
    )
    assert (started.returncode, started.stdout, started.stderr) == (0, b"", b"")


def may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="needs to be allowed to make a PID namespace")
@pytest.mark.parametrize("program", PROGRAMS)
def test_process_1_is_ended_by_a_signal_from_its_first_moment_on(program: str, config: str) -> None:
    code = f"import os; assert os.getpid() == 1\n{SLOW.format(program=program, config=config)}"
    parent = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", code],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"loading\n"
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert parent.wait(50) == 0
    finally:
        parent.kill()
        parent.communicate()


@pytest.mark.skipif(not may_unshare(), reason="needs to be allowed to make a PID namespace")
@pytest.mark.parametrize(("prefix", "warnings"), [([], 1), (["env", "--block-signal=TERM"], 0)])
def test_process_1_reports_that_it_may_have_lost_a_signal(prefix: list[str], warnings: int, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configuration("default")))
    started = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", *prefix, sys.executable, "-m", "agent", "--config", config],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "KUBECONFIG": "/none"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert started.stderr.count(b"env --block-signal=TERM") == warnings, started.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_works_without_standard_streams(program: str, cluster: Cluster, namespace: str) -> None:
    if program == "webhooks":
        process: AgentProcess = WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig)
    else:
        process = AgentProcess(configuration(namespace), kubeconfig=cluster.kubeconfig)
        process.program = program
    process.prefix = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    with process.start():
        process.wait_until_ready()
        streams = [str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in range(3)]
        assert streams == [os.devnull] * 3
    assert process.exit_code == 0
