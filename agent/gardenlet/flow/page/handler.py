"""Responses of `/flows`; see the docstring of the package."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import orjson
from aiohttp import web

from agent.gardenlet.flow.record import FlowRecords, Flows, Subject
from gardener import flow_pictures
from gardener.flow_reports import FlowReport
from kube.clock import utc_now
from process.pages import answers, templates

environment = templates.environment(
    Path(__file__).parent / "templates", flow_pictures.TEMPLATES, server="Gardenlet", files="static"
)
environment.globals |= flow_pictures.GLOBALS


def answer(request: web.BaseRequest, records: FlowRecords, *, on_loopback: bool) -> web.Response:
    if first := templates.answer_first(request, request.path.removeprefix("/flows/static"), on_loopback=on_loopback):
        return first
    # Encoded, as a name could contain a slash.
    parts = [unquote(each) for each in request.rel_url.raw_path.split("/")[2:]]
    as_json = request.query.get("format") == "json"
    if parts in ([], [""]):
        return _list(records, parts, as_json=as_json)
    subject, flows = _found(records, parts)
    if subject is None or flows is None:
        return _not_found(parts, as_json=as_json)
    shown = {
        name: recording.report()
        for name, recording in (("running", flows.running), ("last", flows.last))
        if recording is not None
    }
    if as_json:
        return _json(200, {**_named(subject), **{name: report.data() for name, report in shown.items()}})
    return _page(200, "object.html", parts, title=_title(subject), reports=shown)


def _found(records: FlowRecords, parts: list[str]) -> tuple[Subject | None, Flows | None]:
    """Find the flows of an object; the kind is case-insensitive, as in kubectl."""
    for subject, flows in records.all():
        names = [subject.key.namespace, subject.key.name] if subject.key.namespace else [subject.key.name]
        if [subject.kind.lower(), *names] == [each.lower() for each in parts[:1]] + parts[1:]:
            return subject, flows
    return None, None


def _list(records: FlowRecords, parts: list[str], *, as_json: bool) -> web.Response:
    found = [(subject, flows.newest.report()) for subject, flows in records.all() if flows.newest is not None]
    if as_json:
        return _json(200, {"flows": [{**_named(subject), **_summary(report)} for subject, report in found]})
    rows = [(_title(subject), _path_of(subject), report) for subject, report in found]
    return _page(200, "list.html", parts, title="Flows", rows=rows)


def _not_found(parts: list[str], *, as_json: bool) -> web.Response:
    reported = "this process has no flow of this object; ask the leader, which runs flows and keeps the last ones"
    if as_json:
        return _json(404, {"error": reported})
    return _page(404, "not_found.html", parts, title="Not found", reported=reported)


def _summary(report: FlowReport) -> dict[str, Any]:
    counts = {"succeeded": report.succeeded, "total": len(report.tasks)}
    return {**{name: value for name, value in report.data().items() if name != "tasks"}, **counts}


def _named(subject: Subject) -> dict[str, str]:
    return {"kind": subject.kind, "namespace": subject.key.namespace, "name": subject.key.name}


def _title(subject: Subject) -> str:
    return f"{subject.kind} {subject.key}"


def _path_of(subject: Subject) -> str:
    names = (subject.kind.lower(), subject.key.namespace, subject.key.name)
    return "/".join(quote(each, safe="") for each in names if each)


def _json(status: int, data: object) -> web.Response:
    return answers.fresh(status, orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n", "application/json")


def _page(status: int, template: str, parts: list[str], *, title: str, **shown: Any) -> web.Response:
    root = "../" * (len(parts) - 1) if parts else "flows/"
    text = environment.get_template(template).render(root=root or "./", now=utc_now(), title=title, **shown)
    return answers.fresh(status, text)
