from prometheus_client import CollectorRegistry, generate_latest

from webhooks.metrics import RequestMetrics

PATH = "/webhooks/x"
NAME, LABEL = "controller_runtime_webhook", f'webhook="{PATH}"'
BUCKETS = ["1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "100.0", "1000.0"]


def exposition(*collectors: RequestMetrics) -> list[str]:
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_series_of_a_path_exist_before_its_first_request() -> None:
    metrics = RequestMetrics()
    metrics.of(PATH)
    assert exposition(metrics) == [
        *(f'{NAME}_latency_seconds_bucket{{le="{bound}",{LABEL}}} 0.0' for bound in [*BUCKETS, "+Inf"]),
        f"{NAME}_latency_seconds_count{{{LABEL}}} 0.0",
        f"{NAME}_latency_seconds_sum{{{LABEL}}} 0.0",
        f'{NAME}_requests_total{{code="200",{LABEL}}} 0.0',
        f'{NAME}_requests_total{{code="500",{LABEL}}} 0.0',
        f"{NAME}_requests_in_flight{{{LABEL}}} 0.0",
        f'resource_manager_webhook_refusals_total{{code="403",{LABEL}}} 0.0',
    ]


def test_requests_are_counted_by_status_and_duration() -> None:
    metrics = RequestMetrics()
    counted = metrics.of(PATH)
    counted.in_flight = 2
    for status, seconds in ((200, 0.001), (200, 0.0011), (500, 2000.0)):
        counted.answered(status, seconds)
    lines = exposition(metrics)
    counts = {"0.0001": 0, "0.001": 1, "0.01": 2, "1000.0": 2, "+Inf": 3}
    assert {
        f'{NAME}_requests_total{{code="200",{LABEL}}} 2.0',
        f'{NAME}_requests_total{{code="500",{LABEL}}} 1.0',
        f"{NAME}_requests_in_flight{{{LABEL}}} 2.0",
        *(f'{NAME}_latency_seconds_bucket{{le="{bound}",{LABEL}}} {count}.0' for bound, count in counts.items()),
        f"{NAME}_latency_seconds_sum{{{LABEL}}} 2000.0021",
    } <= set(lines)


def test_a_path_has_one_count_however_often_it_is_requested() -> None:
    metrics = RequestMetrics()
    assert metrics.of(PATH) is metrics.of(PATH)


def test_refusals_are_counted_by_the_code_of_the_answer() -> None:
    metrics = RequestMetrics()
    for code in (403, 403, 422):
        metrics.of(PATH).refused(code)
    found = [line for line in exposition(metrics) if line.startswith("resource_manager_webhook_refusals_total")]
    assert found == [
        f'resource_manager_webhook_refusals_total{{code="403",{LABEL}}} 2.0',
        f'resource_manager_webhook_refusals_total{{code="422",{LABEL}}} 1.0',
    ]
