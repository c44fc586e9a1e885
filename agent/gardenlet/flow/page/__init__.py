"""`/flows`, on the metrics server: flows of this process as pictures and as JSON (`?format=json`).

    /flows                          all objects, latest start first
    /flows/seed/NAME                the running and the last flow of an object
    /flows/shoot/NAMESPACE/NAME
    /flows/shoot/NAMESPACE/NAME/diff   changes that the next reconciliation would make, as JSON only

All but the last are served from memory. Links are relative, so that the page works through the proxy of an API server.
"""

from aiohttp import web

from agent.gardenlet.flow.page.preview import preview_answer, preview_asked_for
from agent.gardenlet.flow.previews import Previews
from agent.gardenlet.flow.record import FlowRecords
from process.pages.answers import is_loopback
from process.server import Handler


def flow_page(records: FlowRecords, previews: Previews, *, host: str) -> Handler:
    """Return the handler; `host` is the listen address of the server."""
    on_loopback = is_loopback(host)

    async def serve(request: web.BaseRequest) -> web.Response:
        if (requested := preview_asked_for(request)) is not None:
            return await preview_answer(request, previews, requested, on_loopback=on_loopback)
        from agent.gardenlet.flow.page.handler import answer  # only here: templates cost memory, and are rarely needed

        return answer(request, records, on_loopback=on_loopback)

    return serve
