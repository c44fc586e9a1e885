"""Spans as OpenTelemetry gets them: whose part they are, which are recorded, what they hold."""

import asyncio
import gc
import itertools
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from unittest.mock import AsyncMock

import orjson
import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import INVALID_SPAN, SpanKind, StatusCode, get_current_span

from kit.eventually import soon
from kube.errors import Conflict, Forbidden, NotFound
from kube.objects import Key, Object
from kube.runtime import tracing
from kube.runtime.controller import Controller, Done, Requeue, RequeueAfter, Result, TerminalError
from process import tracing as process_tracing
from process.configuration.blocks import Tracing
from process.configuration.errors import ConfigError
from process.tracing import SpanExport, check_installed, log_seldom, parts, provider, traces_url
from webhooks.admission import Allowed, Answer, Changed, Denied
from webhooks.review import Reviewer

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
KEY = Key("garden", "thing")

Collect = Callable[[int], InMemorySpanExporter]


@pytest.fixture
def collect() -> Iterator[Collect]:
    """Switches tracing on, for so many traces of a million."""

    def begin(rate: int) -> InMemorySpanExporter:
        exporter = InMemorySpanExporter()
        made = provider(
            Tracing(sampling_rate_per_million=rate), SimpleSpanProcessor(exporter), service="test", version="v1.2.3"
        )
        tracing.collect(made.get_tracer("test"))
        return exporter

    yield begin
    tracing.collect(None)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_a_request_is_a_part_of_the_pass_that_sends_it(collect: Collect) -> None:
    exporter = collect(1_000_000)
    with tracing.reconcile("c", KEY, pass_id="1"), tracing.api_call("GET", "/api/v1/pods", host="h") as call:
        sent = tracing.outgoing(call, {"Accept": "x"})
    inner, outer = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("list pods", "reconcile c")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert outer.parent is None
    assert (outer.kind, inner.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert sent == {
        "Accept": "x",
        "traceparent": f"00-{outer.context.trace_id:032x}-{inner.context.span_id:016x}-01",
    }
    assert get_current_span() is INVALID_SPAN


def test_what_is_served_continues_the_trace_of_who_queried(collect: Collect) -> None:
    exporter = collect(0)
    with tracing.served("POST", "/webhooks/a", SAMPLED):
        pass
    (span,) = exporter.get_finished_spans()
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.kind is SpanKind.SERVER


def test_what_the_caller_does_not_record_is_not_recorded_and_handed_on(collect: Collect) -> None:
    exporter = collect(1_000_000)
    with tracing.served("POST", "/webhooks/a", NOT_SAMPLED) as span:
        assert not span.is_recording()
        with tracing.api_call("GET", "/api/v1/pods", host="h") as call:
            sent = tracing.outgoing(call, {})
    assert exporter.get_finished_spans() == ()
    assert sent["traceparent"].startswith(f"00-{TRACE}-")
    assert sent["traceparent"].endswith("-00")


@pytest.mark.parametrize("headers", [{}, {"traceparent": "garbage"}, {"traceparent": f"00-{'0' * 32}-{PARENT}-01"}])
@pytest.mark.parametrize(("rate", "count"), [(0, 0), (1_000_000, 1)])
def test_without_a_caller_chance_decides(collect: Collect, headers: dict[str, str], rate: int, count: int) -> None:
    exporter = collect(rate)
    with tracing.served("POST", "/webhooks/a", headers):
        pass
    assert len(exporter.get_finished_spans()) == count


async def test_passes_side_by_side_are_kept_apart(collect: Collect) -> None:
    exporter = collect(1_000_000)

    async def work(name: str) -> None:
        with tracing.reconcile(name, KEY, pass_id="1"):
            await asyncio.sleep(0)
            with tracing.api_call("GET", f"/api/v1/namespaces/{name}", host="h"):
                await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"))
    spans = exporter.get_finished_spans()
    owners = {span.context.span_id: span.name for span in spans if span.context and span.parent is None}
    calls = {attributes(s)["k8s.object.name"]: owners[s.parent.span_id] for s in spans if s.parent is not None}
    assert calls == {"a": "reconcile a", "b": "reconcile b"}


@pytest.mark.parametrize(
    ("outcome", "result", "error"),
    [
        (Done(), "success", None),
        (RequeueAfter(60), "requeue_after", None),
        (Requeue(), "requeue", None),
        (Forbidden(403, message="password is hunter2"), "error", "Forbidden"),
        (Conflict(409, message="password is hunter2"), "requeue", None),
        (TerminalError("password is hunter2"), "error", "TerminalError"),
        (
            ExceptionGroup("hunter2", [NotFound(404, message="hunter2"), KeyError("hunter2")]),
            "error",
            "KeyError,NotFound",
        ),
    ],
)
async def test_a_pass_records_its_result_and_no_messages(
    collect: Collect, outcome: Result | Exception, result: str, error: str | None
) -> None:
    exporter = collect(1_000_000)
    controller = Controller(f"traced-{result}-{error}", AsyncMock(side_effect=itertools.repeat(outcome)))
    running = asyncio.create_task(controller.run())
    controller.queue.add(KEY)
    await soon(exporter.get_finished_spans)
    running.cancel()
    await asyncio.wait({running})
    span = exporter.get_finished_spans()[0]
    found = attributes(span)
    assert (found["reconcile.result"], found.get("error.type")) == (result, error)
    assert (found["k8s.namespace.name"], found["k8s.object.name"]) == ("garden", "thing")
    assert span.status.status_code is (StatusCode.ERROR if error else StatusCode.UNSET)
    assert "hunter2" not in span.to_json()


def test_an_error_that_leaves_a_span_fails_it_by_its_class(collect: Collect) -> None:
    exporter = collect(1_000_000)
    with (
        pytest.raises(Conflict),
        tracing.reconcile("c", KEY, pass_id="1"),
        tracing.api_call("PUT", "/api/v1/namespaces/a/secrets/s", host="h") as call,
    ):
        call.set_attribute("http.response.status_code", 409)
        raise Conflict(409, message="hunter2")
    inner = exporter.get_finished_spans()[0]
    assert attributes(inner)["error.type"] == "Conflict"
    assert attributes(inner)["http.response.status_code"] == 409
    assert inner.status.description is None
    assert "hunter2" not in inner.to_json()
    assert inner.events == ()


def test_values_are_bounded(collect: Collect) -> None:
    exporter = collect(1_000_000)
    with tracing.reconcile("c", Key("n", "x" * 100_000), pass_id="1"):
        pass
    assert len(str(attributes(exporter.get_finished_spans()[0])["k8s.object.name"])) == 256


SECRET: Object = {"kind": "Secret", "stringData": {"password": "hunter2"}}


@pytest.mark.parametrize(
    ("answer", "allowed", "operations", "code", "error"),
    [
        (Changed(SECRET, {**SECRET, "data": {"a": "hunter2"}, "type": "t"}), True, 2, 200, None),
        (Allowed(), True, 0, 200, None),
        (Denied("hunter2"), False, 0, 403, None),
        (KeyError("hunter2"), False, 0, 500, "KeyError"),
    ],
)
async def test_an_admission_records_question_and_answer_but_nothing_of_the_object(
    collect: Collect, answer: Answer | Exception, allowed: bool, operations: int, code: int, error: str | None
) -> None:
    exporter = collect(1_000_000)
    handler = AsyncMock(side_effect=[answer])
    body = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE",'
        b'"kind":{"group":"","version":"v1","kind":"Secret"},"namespace":"garden","name":"thing","dryRun":true,'
        b'"object":%b}}' % orjson.dumps(SECRET)
    )
    with structlog.testing.capture_logs(), tracing.served("POST", "/webhooks/a", SAMPLED):
        await Reviewer("a", handler, path="/webhooks/a")(body, "application/json")
    (span,) = exporter.get_finished_spans()
    found = attributes(span)
    kept = {name.removeprefix("admission."): found[name] for name in found if name.startswith("admission")}
    requested = {"uid": "u1", "operation": "CREATE", "kind": "Secret", "group": "", "version": "v1", "dry_run": True}
    answered = {"allowed": allowed, "patch_operations": operations, "code": code}
    assert kept == {"webhook": "a", **requested, **answered}
    assert (found["k8s.namespace.name"], found["k8s.object.name"]) == ("garden", "thing")
    assert found.get("error.type") == error
    assert "hunter2" not in span.to_json()


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://collector/", "https://collector/v1/traces"),
        ("https://collector/otlp/v1/traces", "https://collector/otlp/v1/traces"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ],
)
def test_the_usual_path_is_added_to_an_endpoint_without_one(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url


def test_without_the_libraries_the_error_names_field_and_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tracing, "_MODULES", ("nowhere.to.be.found",))
    check_installed(Tracing())
    with pytest.raises(
        ConfigError, match=r"^tracing\.enabled: Forbidden: the SDK of OpenTelemetry is not installed: .*`tracing`"
    ):
        check_installed(Tracing(enabled=True))


def test_with_the_libraries_it_may_be_on_and_while_it_is_off_there_is_nothing_to_start() -> None:
    check_installed(Tracing(enabled=True))
    assert parts(Tracing(), service="s", version="v1.2.3", grace_period=5) == []
    assert [part.name for part in parts(Tracing(enabled=True), service="s", version="v1.2.3", grace_period=5)] == [
        "tracing"
    ]


def test_programs_import_the_interface_alone() -> None:
    code = """
import sys, agent.resource_manager.app, webhooks.app
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("opentelemetry.")}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"sdk", "exporter", "proto"}.isdisjoint(done.stdout.split())


async def test_a_collector_that_is_away_does_not_hold_up_the_end(unused_tcp_port_factory: Callable[[], int]) -> None:
    settings = Tracing(enabled=True, endpoint=f"http://127.0.0.1:{unused_tcp_port_factory()}")
    export = SpanExport(settings, service="test", version="v1.2.3", flush_within=0.05)
    with structlog.testing.capture_logs() as logs:
        await export.start()
        with tracing.served("POST", "/webhooks/a", SAMPLED) as span:
            assert span.is_recording()
        async with asyncio.timeout(60):
            await export.stop()
    assert tracing.served("POST", "/webhooks/a", SAMPLED) is tracing.NOTHING
    assert "The last spans could not be sent in time" in [entry["event"] for entry in logs]


async def test_what_never_started_stops() -> None:
    await SpanExport(Tracing(enabled=True), service="test", version="v1.2.3", flush_within=1).stop()


def test_each_sort_of_trouble_is_logged_once_a_minute() -> None:
    logger = logging.getLogger("test.trouble")
    log_seldom(logger)
    with structlog.testing.capture_logs() as logs:
        for number in range(100):
            logger.getChild("part").error("no collector: %s", number)
            logger.warning("queue is full")
    assert [entry["reason"] for entry in logs] == ["no collector: 0", "queue is full"]


async def test_spans_that_no_collector_takes_are_dropped(unused_tcp_port: int) -> None:
    export = SpanExport(
        Tracing(enabled=True, endpoint=f"http://127.0.0.1:{unused_tcp_port}"),
        service="test",
        version="v1.2.3",
        flush_within=0.05,
    )
    with structlog.testing.capture_logs() as logs:
        await export.start()
        for _ in range(5000):
            with tracing.served("POST", "/webhooks/a", SAMPLED):
                pass
        kept = sum(isinstance(each, ReadableSpan) for each in gc.get_objects())
        await export.stop()
    # In the queue, and in the batch that is being sent.
    assert kept < 4000
    assert sum("Queue full" in entry.get("reason", "") for entry in logs) == 1
