"""Errors that are shown of local processes that have ended."""

from pathlib import Path

import pytest

from localprocesses.ended import last_error, reason


@pytest.mark.parametrize(
    ("printed", "reported"),
    [
        (f"a: write x: no space left on device\n{'trace ' * 400}", "a: write x: no space left on device"),
        (f"{'long ago ' * 2000}the last\n", f"{'long ago ' * 2000}the last"[-500:]),
        (
            """E1129 12:57:34.5 1 run.go:72] "command failed" err="unknown api groups \\"foo\\""\nI1129 12:57:34.6 1 flags.go:64] FLAG: --v="2"\n""",
            'unknown api groups "foo"',
        ),
        ("E1129 12:57:34.5 1 a.go:7] the reason\nI1129 12:57:35.5 1 b.go:7] stopped\n", "the reason"),
        ("Error: unknown flag: --x\nUsage:\n  --a  b\n", "unknown flag: --x"),
        ("a: write x: no space left on device\nexit\n", "a: write x: no space left on device"),
        ("", ""),
        ("panic: no\n\ngoroutine 1 [running]:\nmain.main()\n", "no"),
        ('{"level":"fatal","msg":"discovery failed","error":"bind: in use"}\n', "discovery failed: bind: in use"),
        ('{"level":"info","msg":"fine"}\n{nothing', '{"level":"info","msg":"fine"}\n{nothing'),
    ],
)
def test_what_is_reported_of_a_process_that_has_ended(tmp_path: Path, printed: str, reported: str) -> None:
    log = tmp_path / "log"
    log.write_text(printed)
    assert last_error(log) == reported


def test_the_reason_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/it.log").write_text("started\nleader election lost\n\n")
    assert (
        reason(tmp_path, "it", {"exit": 1, "wait": 3.6})
        == "ended with 1, and is started again in 4 s: leader election lost"
    )
    assert reason(tmp_path, "it", {"exit": -9, "wait": None}) == "was killed by SIGKILL"
