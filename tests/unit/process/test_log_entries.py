"""The lines that logging writes: keys, levels, formats, sampling, what is left out of them."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self

import pytest
import structlog

from kit.objects import secret
from kube.objects import Key
from process.logging import Sampling, configure_logging, get_logger


class Log:
    def __init__(self) -> None:
        self.now = 1726757801.123
        self._bytes = io.BytesIO()
        self._stream = io.TextIOWrapper(self._bytes, encoding="utf-8")

    def configure(self, **settings: Any) -> Self:
        configure_logging(**{"stream": self._stream, "clock": lambda: self.now, **settings})
        return self

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def entry(self) -> dict[str, Any]:
        (entry,) = self.entries
        return entry


@pytest.fixture
def log() -> Iterator[Log]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield Log()
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    ("name", "shown"), [("webhook.seccomp-profile", '"logger":"webhook.seccomp-profile",'), ("", "")]
)
def test_a_json_entry_has_level_time_logger_message_and_fields_in_this_order(log: Log, name: str, shown: str) -> None:
    log.configure()
    get_logger(name).info("Hello", count=1)
    assert log.text == f'{{"level":"info","ts":"2024-09-19T14:56:41.123Z",{shown}"msg":"Hello","count":1}}\n'


def test_a_text_entry_has_columns_and_cannot_be_forged_by_line_breaks_in_the_message(log: Log) -> None:
    log.configure(log_format="text")
    get_logger("a").info("one\ntwo\tthree", x="line\nbreak")
    get_logger().info("bare")
    assert log.text == (
        '2024-09-19T14:56:41.123Z\tINFO\ta\tone\\ntwo\\tthree\t{"x":"line\\nbreak"}\n'
        "2024-09-19T14:56:41.123Z\tINFO\tbare\n"
    )


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x9b2J\x7f", "a\rb\u2028c\x85d", "\u202eabc\u200b", "one\n2024-09-19T14:56\tINFO"]
)
def test_nothing_that_a_terminal_obeys_and_no_line_of_another_client_is_in_an_entry(
    log: Log, log_format: Literal["json", "text"], hostile: str
) -> None:
    log.configure(log_format=log_format)
    get_logger(hostile).error(hostile, error=raised(ValueError(hostile)), field=hostile, **{hostile: hostile})
    first, *others = log.text.removesuffix("\n").split("\n")
    assert first.replace("\t", "").isprintable()
    # Those of the stack trace.
    assert all(line[0] == "\t" and line[1:].isprintable() for line in others)
    if log_format == "json":
        assert (log.entry["msg"], log.entry[hostile]) == (hostile, hostile)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("debug", ["debug", "info", "info", "error", "error"]),
        ("info", ["info", "info", "error", "error"]),
        ("error", ["error", "error"]),
    ],
)
def test_a_level_shows_itself_and_what_is_more_severe_and_there_are_just_three(
    log: Log, level: str, expected: Any
) -> None:
    log.configure(level=level)
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(get_logger(), name)("m")
    assert [entry["level"] for entry in log.entries] == expected


def test_an_error_entry_has_the_error_and_its_stack_trace(log: Log) -> None:
    log.configure()
    get_logger().error("Reconciler error", error=raised(ValueError("bad thing")))
    assert log.entry["error"] == "bad thing"
    assert "in raised" in log.entry["stacktrace"]
    assert list(log.entry) == ["level", "ts", "msg", "error", "stacktrace"]


def test_the_exception_in_flight_is_logged_too(log: Log) -> None:
    log.configure()
    try:
        raise KeyError("x")
    except KeyError:
        get_logger().exception("Failed")
    assert log.entry["level"] == "error"
    assert log.entry["error"] == "'x'"
    assert log.entry["stacktrace"].startswith("Traceback")


def test_an_error_that_is_only_noted_has_no_stack_trace(log: Log) -> None:
    log.configure()
    get_logger().info("Will try again", error=raised(TimeoutError()))
    assert log.entry["error"] == "TimeoutError"
    assert "stacktrace" not in log.entry


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Key("ns", "a"), {"namespace": "ns", "name": "a"}),
        (Key("", "node-1"), {"name": "node-1"}),
        (secret("ns/a", data={"k": "djE="}), {"namespace": "ns", "name": "a"}),
        ({"metadata": None, "x": 1}, {"metadata": None, "x": 1}),
        ([Key("ns", "a")], [{"namespace": "ns", "name": "a"}]),
        (timedelta(minutes=1), "1m0s"),
        (datetime(2024, 9, 19, tzinfo=UTC), "2024-09-19T00:00:00+00:00"),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ({1: {"a"}}, {"1": ["a"]}),
        (ValueError("no"), "no"),
        (float("nan"), None),
        (2**70, 2**70),
        ("\ud800", "\ud800"),
    ],
)
def test_field_values_are_rendered_for_people(log: Log, value: Any, expected: Any) -> None:
    log.configure()
    get_logger().info("m", field=value)
    assert log.entry["field"] == expected


@pytest.mark.parametrize(
    "name",
    [
        *("token", "bootstrapToken", "access_token", "password", "data", "stringData", "kubeconfig", "Authorization"),
        "tls.key",
    ],
)
def test_fields_named_after_credentials_are_replaced_at_any_depth(log: Log, name: str) -> None:
    log.configure()
    get_logger().info("m", **{name: "v3ry-secret"}, nested={"inner": [{name: b"v3ry-secret"}]})
    assert "v3ry-secret" not in log.text
    assert log.entry[name] == "[redacted]"


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln-bmF0_dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"got {JWT} back", "got [redacted] back"),
        (f"Authorization: Bearer {JWT}", "Authorization: Bearer [redacted]"),
        ("bearer abcdef.0123456789abcdef rejected", "bearer [redacted] rejected"),
        ("Get https://me:pw@host/x", "Get https://[redacted]@host/x"),
        ("x -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- y", "x [redacted] y"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted]"),
        ("bearer token is missing", "bearer token is missing"),
        ("mail me@example.org: eyJ", "mail me@example.org: eyJ"),
    ],
)
def test_what_looks_like_a_credential_is_cut_out_of_any_text(log: Log, text: str, expected: Any) -> None:
    log.configure()
    get_logger().error(text, field=text, listed=[text], error=raised(ValueError(text)))
    entry = log.entry
    assert entry["msg"] == entry["field"] == entry["listed"][0] == entry["error"] == expected
    assert "MII" not in entry["stacktrace"]
    assert JWT not in entry["stacktrace"]


def test_huge_values_are_cut_off(log: Log) -> None:
    log.configure()
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    get_logger().info("x" * 10**6, many=list(range(10**5)), wide={str(i): i for i in range(10**4)}, deep=deep)
    assert len(log.text) < 25_000
    assert log.entry["msg"].endswith("characters more)")
    assert log.entry["many"][-1] == "… 99900 more"


def test_fields_cannot_replace_the_keys_of_the_contract(log: Log) -> None:
    log.configure()
    get_logger().info("m", level="fatal", ts="never", msg="other")
    assert log.entry == {"level": "info", "ts": "2024-09-19T14:56:41.123Z", "msg": "m"}


def test_context_variables_are_part_of_each_entry(log: Log) -> None:
    log.configure()
    with structlog.contextvars.bound_contextvars(controller="health", reconcileID="1"):
        get_logger("x").bind(name="a").info("m")
    assert log.entry["controller"] == "health"
    assert log.entry["reconcileID"] == "1"
    assert log.entry["name"] == "a"


def test_loggers_of_the_standard_library_take_the_same_way(log: Log) -> None:
    log.configure()
    logging.getLogger("aiohttp.server").debug("off")
    logging.getLogger("aiohttp.server").warning("odd %s", JWT)
    logging.getLogger("asyncio").error("lost", exc_info=raised(ValueError("why")))
    warned, lost = log.entries
    about = {"level": "info", "ts": "2024-09-19T14:56:41.123Z", "logger": "aiohttp.server"}
    assert warned == {**about, "msg": "odd [redacted]"}
    assert (lost["level"], lost["logger"], lost["error"]) == ("error", "asyncio", "why")


def test_loggers_of_structlog_with_a_positional_name_take_the_same_way(log: Log) -> None:
    log.configure()
    structlog.get_logger("watch").bind(resource="pods").info("m")
    assert log.entry["logger"] == "watch"


def test_a_reader_of_the_log_that_went_away_does_not_stop_the_work(log: Log) -> None:
    log.configure(stream=(closed := io.TextIOWrapper(io.BytesIO())))
    closed.close()
    get_logger("x").info("lost")
    logging.getLogger("y").warning("lost as well")
    log.configure()
    get_logger("x").info("read again")
    assert [entry["msg"] for entry in log.entries] == ["read again"]


def test_in_a_second_the_first_hundred_of_a_message_are_written_then_every_hundredth(log: Log) -> None:
    log.configure()
    logger = get_logger()
    for number in range(1, 351):
        logger.info("flood", number=number)
    logger.info("other")
    assert [entry["number"] for entry in log.entries[:-1]] == [*range(1, 101), 200, 300]
    assert log.entries[-1]["msg"] == "other"
    log.now += 1
    logger.info("flood", number=0)
    assert log.entries[-1]["number"] == 0


def test_levels_are_sampled_apart(log: Log) -> None:
    log.configure(level="debug")
    for _ in range(100):
        get_logger().info("same")
    get_logger().debug("same")
    assert len(log.entries) == 101


def test_sampling_goes_on_after_the_clock_was_set_back(log: Log) -> None:
    log.configure()
    for _ in range(150):
        get_logger().info("same")
    log.now -= 3600
    get_logger().info("same")
    assert len(log.entries) == 101


def test_messages_of_variable_text_do_not_fill_memory() -> None:
    sampling = Sampling(lambda: 0.0)
    passed = 0
    for number in range(20_000):
        try:
            sampling(None, "info", {"event": f"message {number}"})
            passed += 1
        except structlog.DropEvent:
            pass
    assert len(sampling._counts) == Sampling.MAX_MESSAGES + 1
    assert passed < Sampling.MAX_MESSAGES + 300
