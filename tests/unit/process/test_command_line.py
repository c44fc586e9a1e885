"""Reading the command line: what is accepted, what is printed, which exit code follows."""

from dataclasses import dataclass, field

import pytest

from process.flags import BindAddress, Exit, Flags, about, parse, start_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFlags(Flags):
    with_webhooks: bool = field(default=False, metadata=about("also serve webhooks"))
    workers: int = field(default=1, metadata=about("processes", metavar="N"))


def read(*arguments: str) -> OwnFlags:
    return parse(OwnFlags, arguments, program="prog", summary="Does things.")


def exit_of(*arguments: str) -> Exit:
    with pytest.raises(Exit) as caught:
        read(*arguments)
    return caught.value


@pytest.mark.parametrize("arguments", [("--config", "/etc/c.yaml"), ("--config=/etc/c.yaml",)])
def test_a_value_follows_after_a_blank_or_an_equals_sign(arguments):
    assert read(*arguments).config == "/etc/c.yaml"


def test_a_repeated_namespace_flag_collects_all_values_and_leaves_the_default_alone():
    flags = read("--config=c", "--extra-target-namespace=a", "--extra-target-namespace", "b")
    assert flags.extra_target_namespace == ("a", "b")
    assert read("--config=c").extra_target_namespace == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8081", BindAddress("", 8081)),
        ("127.0.0.1:0", BindAddress("127.0.0.1", 0)),
        ("[::1]:8080", BindAddress("::1", 8080)),
        ("localhost:65535", BindAddress("localhost", 65535)),
    ],
)
def test_bind_addresses_are_read_and_written_in_the_same_form(text, expected):
    flags = read("--config=c", f"--metrics-bind-address={text}", f"--health-probe-bind-address={text}")
    assert flags.metrics_bind_address == flags.health_probe_bind_address == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["8081", "host", "::1:8080", "host:65536", "host:-1", "host:²", ""])
def test_a_bad_bind_address_is_an_error_that_names_the_flag_and_the_remedy(text):
    exit_ = exit_of("--config=c", f"--metrics-bind-address={text}")
    assert exit_.code == 1
    assert "--metrics-bind-address" in exit_.stdout
    assert "is not an address" in exit_.stdout


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
        (("--config=c", "--with-webhooks", "start"), 'unexpected argument "start"; only flags are taken'),
        (("--config=c", "--workers=two"), 'argument --workers: "two" is not a whole number'),
        (("--config=c", "--with-webhooks=2"), 'argument --with-webhooks: "2" is neither true nor false'),
        (
            ("--config=c", "--version=1.2"),
            'argument --version: "1.2" is not one of true, false, raw, or a version such as v1.2.3',
        ),
    ],
)
def test_a_wrong_command_line_ends_with_code_1_the_text_and_the_usage(arguments, message):
    exit_ = exit_of(*arguments)
    assert exit_.code == 1
    assert exit_.stdout == message
    assert exit_.stderr.startswith("usage: prog --config FILE [flags]")
    assert exit_.stderr.endswith(f"Error: {message}")


def test_own_flags_of_a_program_are_read_with_the_type_of_their_default():
    flags = read("--config=c", "--with-webhooks", "--workers=3")
    assert (flags.with_webhooks, flags.workers) == (True, 3)
    assert not read("--config=c", "--with-webhooks=false").with_webhooks


@pytest.mark.parametrize("arguments", [("-h",), ("--help",), ("--config=c", "--help")])
def test_help_says_what_the_program_is_its_flags_and_variables_and_gives_an_example(arguments):
    exit_ = exit_of(*arguments)
    assert (exit_.code, exit_.stderr) == (0, "")
    for part in ("Does things.", "--config FILE", "--workers N", "TARGET_KUBECONFIG", "prog --config config.yaml"):
        assert part in exit_.stdout


@pytest.mark.parametrize("argument", ["--version", "--version=true", "--version=raw"])
def test_the_version_is_printed_without_a_configuration_file(argument):
    exit_ = exit_of(argument)
    assert (exit_.code, exit_.stderr) == (0, "")
    assert exit_.stdout.startswith("gardener-resource-manager v")


def test_a_version_on_the_command_line_overrides_what_is_reported_and_the_program_runs_on():
    assert read("--config=c", "--version=v1.103.0-rc.1").version_override == "v1.103.0-rc.1"
    assert read("--config=c", "--version=false").version_override == ""
    assert read("--config=c").version_override == ""


def test_there_is_one_log_line_for_each_flag_in_the_order_of_names():
    flags = read("--config=c", "--extra-target-namespace=a", "--extra-target-namespace=b", "--with-webhooks")
    assert flags.flag_lines() == [
        "FLAG: --config=c",
        "FLAG: --extra-target-namespace=[a,b]",
        "FLAG: --health-probe-bind-address=",
        "FLAG: --help=false",
        "FLAG: --metrics-bind-address=",
        "FLAG: --version=false",
        "FLAG: --with-webhooks=true",
        "FLAG: --workers=1",
    ]


def test_an_error_of_the_start_goes_to_standard_output_and_with_the_usage_to_standard_error(capsys):
    assert start_failure("error reading config file: gone", OwnFlags, program="prog").show() == 1
    printed = capsys.readouterr()
    assert printed.out == "error reading config file: gone\n"
    assert printed.err.startswith("usage: prog")
    assert printed.err.endswith("Error: error reading config file: gone\n")
