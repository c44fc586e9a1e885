"""The pages of flows: what they show, to whom, and what they don't let through."""

import asyncio
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.flow.page import flow_page
from agent.gardenlet.flow.previews import NoPreviewError, Previews
from agent.gardenlet.flow.record import FlowRecords, Subject
from gardener import error_codes
from gardener.difference_reports import DifferenceReport, ObjectDifference, Place, UnknownTask
from gardener.flow_reports import State
from kube.errors import Unreachable
from kube.objects import Key
from process.pages.templates import STATIC

SCRIPT = "<script>alert('hostile')</script>"
SHOOT = Subject("Shoot", Key("garden-dev", "web"))


async def _act(_: None) -> None:
    pass


GRAPH = Graph(
    "Shoot cluster reconciliation",
    [
        Task("infra", "Waiting until infrastructure is ready", _act),
        Task("dns", "Deploying DNS", _act),
        Task("worker", "Deploying workers", _act, after=["infra", "dns"]),
    ],
)


@pytest.fixture
def records() -> FlowRecords:
    seconds = iter(range(1000))
    records = FlowRecords(now=lambda: float(next(seconds)))
    failed = records.begin(SHOOT, GRAPH, ())
    failed.start("infra")
    failed.start("dns")
    failed.wait("infra", f"Infrastructure x/y: {SCRIPT}\x1b[2J")
    failed.end("infra", error=f"no rights {SCRIPT}", codes=[error_codes.INFRA_UNAUTHORIZED])
    failed.end("dns")
    failed.close(State.FAILED)
    records.begin(SHOOT, GRAPH, ()).start("dns")
    records.begin(Subject("Seed", Key("", "meadow")), GRAPH, ())
    return records


async def _answer(
    records: FlowRecords, path: str, *, host: str = "127.0.0.1", previews: Previews | None = None, **request: Any
) -> web.Response:
    options: dict[str, Any] = {"method": "GET", "headers": {"Host": "localhost:2729"}, **request}
    answer = await flow_page(records, previews or Previews(), host=host)(make_mocked_request(path=path, **options))
    assert isinstance(answer, web.Response)
    return answer


async def _text(records: FlowRecords, path: str) -> str:
    answer = await _answer(records, path)
    assert answer.status == 200, path
    return answer.text or ""


async def _data(records: FlowRecords, path: str) -> Any:
    return orjson.loads(await _text(records, f"{path}?format=json"))


async def test_the_list_has_each_object_with_its_newest_flow(records: FlowRecords) -> None:
    found = (await _data(records, "/flows"))["flows"]
    assert [(each["kind"], each["namespace"], each["name"], each["state"]) for each in found] == [
        ("Seed", "", "meadow", "Running"),
        ("Shoot", "garden-dev", "web", "Running"),
    ]
    assert "tasks" not in found[0]
    page = await _text(records, "/flows")
    assert 'href="flows/seed/meadow"' in page
    assert 'href="./shoot/garden-dev/web"' in await _text(records, "/flows/")


async def test_an_object_has_its_running_and_its_last_flow(records: FlowRecords) -> None:
    data = await _data(records, "/flows/shoot/garden-dev/web")
    assert (data["running"]["state"], data["last"]["state"]) == ("Running", "Failed")
    failed, _, stopped = data["last"]["tasks"]
    assert failed["codes"] == ["ERR_INFRA_UNAUTHORIZED"]
    assert "rights" in failed["remedy"]
    assert (stopped["state"], stopped["after"]) == ("NotStarted", ["Waiting until infrastructure is ready"])
    page = await _text(records, "/flows/Shoot/garden-dev/web")
    for reported in (
        "Running flow",
        "Last flow",
        "waits for Waiting until infrastructure is ready, Deploying DNS",
        "→ ",
    ):
        assert reported in page


async def test_what_others_wrote_is_text(records: FlowRecords) -> None:
    page = await _text(records, "/flows/shoot/garden-dev/web")
    assert SCRIPT not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    "path", ["/flows/shoot/garden-dev/other", "/flows/seed", "/flows/static/x.css", "/flows/a/b/c/d"]
)
async def test_what_is_not_known_is_not_found(records: FlowRecords, path: str) -> None:
    assert (await _answer(records, path)).status == 404
    answer = await _answer(records, f"{path}?format=json")
    assert (answer.status, answer.content_type) == (404, "application/json")


async def test_static_files_may_be_kept(records: FlowRecords) -> None:
    for path in STATIC:
        answer = await _answer(records, f"/flows/static{path}")
        assert "immutable" in answer.headers["Cache-Control"]


async def test_pages_are_read_only_and_have_strict_headers(records: FlowRecords) -> None:
    assert (await _answer(records, "/flows", method="POST")).status == 405
    answer = await _answer(records, "/flows")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(("listens", "status"), [("127.0.0.1", 421), ("", 200)])
async def test_on_loopback_other_names_are_refused(records: FlowRecords, listens: str, status: int) -> None:
    answer = await _answer(records, "/flows", host=listens, headers={"Host": "rebound.example.com"})
    assert answer.status == status


# --- previews

PREVIEW = "/flows/shoot/garden-dev/web/diff"
REPORT = DifferenceReport([], [UnknownTask("Deploying DNS", "there is no address yet")])


def _offered(error: Exception | None = None) -> Previews:
    async def make(name: Key) -> DifferenceReport:
        assert name == SHOOT.key
        if error is not None:
            raise error
        return REPORT

    previews = Previews()
    previews.offer("Shoot", make)
    return previews


async def test_a_preview_is_served_as_json(records: FlowRecords) -> None:
    answer = await _answer(records, PREVIEW, previews=_offered())
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert answer.headers["Cache-Control"] == "no-store"
    assert DifferenceReport.of(orjson.loads(_body(answer))) == REPORT


async def test_what_looks_like_a_credential_is_cut_out_of_a_preview(records: FlowRecords) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    text = {"a": f"token: {token}", "b": ["Bearer abcdefghijklmnopq", "-----BEGIN PRIVATE KEY-----\nxyz"]}
    differs = ObjectDifference(
        place=Place.SEED, api_version="v1", kind="ConfigMap", name="n/a", after=text, problem=token
    )

    async def make(_: Key) -> DifferenceReport:
        return DifferenceReport([differs])

    previews = Previews()
    previews.offer("Shoot", make)
    (found,) = orjson.loads(_body(await _answer(records, PREVIEW, previews=previews)))["differences"]
    assert found["problem"] == "[redacted]"
    assert found["after"] == {"a": "token: [redacted]", "b": ["Bearer [redacted]", "[redacted]"]}


@pytest.mark.parametrize(
    ("path", "error", "status", "reported"),
    [
        (PREVIEW, NoPreviewError(409, "it is being deleted"), 409, "it is being deleted"),
        (PREVIEW, Unreachable("no answer"), 502, "its inputs can't be read: no answer"),
        (
            "/flows/seed/a/b/diff",
            None,
            404,
            "this process has no preview of a seed; ask the leader, which previews Shoots",
        ),
    ],
)
async def test_it_is_reported_why_there_is_no_preview(
    records: FlowRecords, path: str, error: Exception | None, status: int, reported: str
) -> None:
    answer = await _answer(records, path, previews=_offered(error))
    found = orjson.loads(_body(answer))
    assert (answer.status, found["kind"], found["code"], found["message"]) == (status, "Status", status, reported)


async def test_previews_are_read_only_and_on_loopback_for_this_computer_only(records: FlowRecords) -> None:
    elsewhere = {"Host": "rebound.example.com"}
    assert (await _answer(records, PREVIEW, previews=_offered(), headers=elsewhere)).status == 421
    assert (await _answer(records, PREVIEW, previews=_offered(), method="POST")).status == 405


async def test_one_preview_is_made_at_a_time(records: FlowRecords) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def make(_: Key) -> DifferenceReport:
        begun.set()
        await goes_on.wait()
        return REPORT

    previews = Previews()
    previews.offer("Shoot", make)
    first = asyncio.create_task(_answer(records, PREVIEW, previews=previews))
    await begun.wait()
    assert (await _answer(records, PREVIEW, previews=previews)).status == 429
    goes_on.set()
    assert (await first).status == 200
    assert (await _answer(records, PREVIEW, previews=previews)).status == 200


def _body(answer: web.Response) -> bytes:
    assert isinstance(answer.body, bytes)
    return answer.body
