"""Reading the command line: what is accepted, what is printed, which exit code follows."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from config.resource_manager import COMPONENT
from process.composition import Parts
from process.configuration.overrides import ClusterConnection
from process.program import Exit, Flags, Program, parse, start_failure

PROGRAM = Program(name="prog", summary="Does things.", component=COMPONENT, compose=lambda: lambda base: Parts())
GARDEN = ClusterConnection(name="garden", attribute="client_connection", variable="KUBECONFIG")
OTHER = replace(
    PROGRAM,
    name="other",
    summary="Does other things.",
    component=replace(COMPONENT, kind="OtherConfiguration", clusters=(GARDEN,)),
)
NO_VERSION = "not one of true, false, raw, or a version such as v1.2.3"


def read(*arguments: str) -> Flags:
    return parse(arguments, (PROGRAM,), version="v1.2.3")


def exit_of(*arguments: str, programs: tuple[Program[Any], ...] = (PROGRAM,)) -> Exit:
    with pytest.raises(Exit) as caught:
        parse(arguments, programs, version="v1.2.3")
    return caught.value


@pytest.mark.parametrize("arguments", [("--config", "/etc/c.yaml"), ("--config=/etc/c.yaml",)])
def test_a_value_follows_after_a_blank_or_an_equals_sign(arguments: tuple[str, ...]) -> None:
    assert read(*arguments).config == "/etc/c.yaml"


def test_a_repeated_namespace_flag_collects_all_values_and_leaves_the_default_alone() -> None:
    flags = read("--config=c", "--extra-target-namespace=a", "--extra-target-namespace", "b")
    assert flags.extra_namespaces == {"target": ("a", "b")}
    assert read("--config=c").extra_namespaces == {"target": ()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing config file"),
        (("--config", ""), "missing config file"),
        (("--config",), "argument --config: expected one argument"),
        (("--config=c", "--nope"), "unknown flag: --nope"),
        (("--config=c", "--nope=1"), "unknown flag: --nope"),
        (("--conf=c",), "unknown flag: --conf"),
        (("--config=c", "start"), 'unexpected argument "start"; only flags are taken'),
        (("--config=c", "--", "start"), 'unexpected argument "start"; only flags are taken'),
        (("--config=c", "--version", "start"), 'unexpected argument "start"; only flags are taken'),
        (("--config=c", "--version=1.2"), f'argument --version: "1.2" is {NO_VERSION}'),
    ],
)
def test_a_wrong_command_line_ends_with_code_1_the_text_and_the_usage(arguments: tuple[str, ...], message: str) -> None:
    exit_ = exit_of(*arguments)
    assert exit_.code == 1
    assert exit_.stdout == message
    assert exit_.stderr.startswith("usage: prog --config FILE [flags]")
    assert exit_.stderr.endswith(f"Error: {message}")


@pytest.mark.parametrize("arguments", [("-h",), ("--help",), ("--config=c", "--help")])
def test_help_reports_what_the_program_is_its_flags_and_variables_and_gives_an_example(
    arguments: tuple[str, ...],
) -> None:
    exit_ = exit_of(*arguments)
    assert (exit_.code, exit_.stderr) == (0, "")
    parts = ("Does things.", "--config FILE", "--metrics-bind-address [HOST]:PORT", "TARGET_KUBECONFIG")
    for part in (*parts, "prog --config config.yaml"):
        assert part in exit_.stdout


def test_help_of_several_programs_reports_which_there_are_and_the_variables_of_each() -> None:
    text = exit_of("--help", programs=(PROGRAM, OTHER)).stdout
    assert text.startswith("usage: prog --config FILE")
    for part in (
        "ResourceManagerConfiguration: Does things.\nOtherConfiguration: Does other things.",
        "KUBECONFIG            kubeconfig of the source cluster; overrides sourceClientConnection.kubeconfig\n",
        "KUBECONFIG            kubeconfig of the garden cluster; overrides clientConnection.kubeconfig\n",
    ):
        assert part in text


@pytest.mark.parametrize("argument", ["--version", "--version=true", "--version=raw"])
def test_the_version_is_printed_without_a_configuration_file(argument: str) -> None:
    exit_ = exit_of(argument)
    assert (exit_.code, exit_.stderr) == (0, "")
    assert exit_.stdout.startswith("gardener-resource-manager v")


def test_a_version_on_the_command_line_overrides_what_is_reported_and_the_program_runs_on() -> None:
    assert read("--config=c", "--version=v1.103.0-rc.1").version_override == "v1.103.0-rc.1"
    assert read("--config=c", "--version=false").version_override == ""
    assert read("--config=c").version_override == ""


def test_there_is_one_log_line_for_each_flag_in_the_order_of_names() -> None:
    flags = read("--config=c", "--extra-target-namespace=a", "--extra-target-namespace=b", "--metrics-bind-address=:1")
    assert flags.flag_lines() == [
        "FLAG: --check=false",
        "FLAG: --config=c",
        "FLAG: --extra-target-namespace=[a,b]",
        "FLAG: --health-probe-bind-address=",
        "FLAG: --help=false",
        "FLAG: --metrics-bind-address=:1",
        "FLAG: --version=false",
    ]


def test_an_error_of_the_start_goes_to_standard_output_and_with_the_usage_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert start_failure("error reading config file: gone", program="prog").show() == 1
    printed = capsys.readouterr()
    assert printed.out == "error reading config file: gone\n"
    assert printed.err.startswith("usage: prog")
    assert printed.err.endswith("Error: error reading config file: gone\n")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """As with `--help | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        command = [sys.executable, "-m", "agent", "--help"]
        done = subprocess.run(command, check=False, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
