"""Changes that the next reconciliation of an object would make, as JSON; see the docstring of the package."""

from typing import Any
from urllib.parse import unquote

import orjson
from aiohttp import web

from agent.gardenlet.flow.previews import NoPreviewError, Previews
from gardener.difference_reports import REFUSED
from kube.errors import KubeError
from kube.objects import Key
from process.pages import answers
from process.redaction import redact_text

_PARTS = 5
_LAST = "diff"


def preview_asked_for(request: web.BaseRequest) -> tuple[str, Key] | None:
    """Kind and name of the object; None for other pages."""
    parts = [unquote(each) for each in request.rel_url.raw_path.split("/")[1:]]
    if len(parts) != _PARTS or parts[-1] != _LAST:
        return None
    return parts[1], Key(parts[2], parts[3])


async def preview_answer(
    request: web.BaseRequest, previews: Previews, requested: tuple[str, Key], *, on_loopback: bool
) -> web.Response:
    if refused := answers.refusal(request, on_loopback=on_loopback):
        return refused
    try:
        report = await previews.make(*requested)
    except NoPreviewError as error:
        return _failure(error.status, str(error))
    except KubeError as error:
        return _failure(502, redact_text(f"its inputs can't be read: {error}"))
    return _json(200, _redacted(report.data()))


def _redacted(value: Any) -> Any:
    """Redact texts that look like credentials, in any field."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {name: _redacted(each) for name, each in value.items()}
    return [_redacted(each) for each in value] if isinstance(value, list) else value


def _failure(status: int, message: str) -> web.Response:
    """Error in the format of API servers, so that clients show the message."""
    head = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return _json(status, {**head, "message": message, "reason": REFUSED, "code": status})


def _json(status: int, data: object) -> web.Response:
    return answers.fresh(status, orjson.dumps(data).decode() + "\n", "application/json")
