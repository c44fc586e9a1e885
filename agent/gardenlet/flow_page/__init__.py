"""`/flows`, beside the metrics: the flows of this process as pictures, for people, and as JSON (`?format=json`).

    /flows                          all objects, those that began last first
    /flows/seed/NAME                the running and the last flow of an object
    /flows/shoot/NAMESPACE/NAME
    /flows/shoot/NAMESPACE/NAME/diff   what the next reconciliation would change, as JSON only

All but the last comes from memory. Links are relative, since the page is also read through the proxy of an API server.
"""

from aiohttp import web

from agent.gardenlet.flow.record import FlowRecords
from agent.gardenlet.flow_page.preview import preview_answer, preview_asked_for
from agent.gardenlet.previews import Previews
from agent.shared.pages.answers import is_loopback
from process.server import Handler


def flow_page(records: FlowRecords, previews: Previews, *, host: str) -> Handler:
    """Args: host: what the server listens on."""
    on_loopback = is_loopback(host)

    async def serve(request: web.BaseRequest) -> web.Response:
        if (asked := preview_asked_for(request)) is not None:
            return await preview_answer(request, previews, asked, on_loopback=on_loopback)
        from agent.gardenlet.flow_page.handler import answer  # only here: templates cost memory, and few look at them

        return answer(request, records, on_loopback=on_loopback)

    return serve
