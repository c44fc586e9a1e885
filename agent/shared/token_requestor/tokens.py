"""ServiceAccounts, TokenRequests and TokenReviews in the target cluster."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson
import structlog

from agent.shared.token_requestor.rules.renewal import wanted_account
from agent.shared.token_requestor.rules.token_spec import TokenSpec
from kube.clock import parse_time
from kube.errors import Forbidden, KubeError
from kube.objects import Object, metadata
from kube.resources import SERVICE_ACCOUNTS, TOKEN_REVIEWS
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from process.redaction import redact_text

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Token:
    text: str = field(repr=False)
    lifetime: timedelta


class Tokens:
    """Requests and checks of tokens in the target cluster.

    Args:
        audiences: audiences of the tokens; empty for those of the API server.
        merge_labels: keep other labels of an existing ServiceAccount.
    """

    def __init__(self, client: Client, *, audiences: tuple[str, ...], merge_labels: bool) -> None:
        self._client = client
        self._merge_labels = merge_labels
        self.audiences = audiences
        self._audiences_tried = not audiences
        self._logged_forbidden = False

    async def ensure_account(self, spec: TokenSpec) -> None:
        """Create or change the ServiceAccount if necessary."""
        live = await self._client.find(SERVICE_ACCOUNTS, spec.account)
        wanted = wanted_account(live, spec, merge_labels=self._merge_labels)
        if wanted is None:
            return
        if live is None:
            await self._client.create(SERVICE_ACCOUNTS, wanted)
        else:
            await self._client.replace(SERVICE_ACCOUNTS, wanted)

    async def request(self, spec: TokenSpec, *, today: datetime) -> Token:
        """Request a new token.

        Raises:
            KubeError: there is none, or the outcome is unknown.
            ReconcileError: the answer is no token.
        """
        account = spec.account
        path = SERVICE_ACCOUNTS.path_of(account, "token")
        wanted: Object = {"expirationSeconds": spec.seconds}
        if self.audiences:
            wanted["audiences"] = list(self.audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
        return read_answer(await self._client.request("POST", path, body=body), today=today)

    async def is_accepted(self, token: bytes) -> bool:
        """Whether the API server accepts the token; assumed if the check is forbidden."""
        try:
            status = await self._review(token, self.audiences)
        except Forbidden as error:
            if not self._logged_forbidden:
                self._logged_forbidden = True
                log.info("Cannot check tokens; grant the right to create tokenreviews", error=redact_text(str(error)))
            return True
        except KubeError as error:
            raise ReconcileError(f"token review failed: {redact_text(str(error))}") from error
        if not status.get("authenticated"):
            log.info("The current token is not accepted", reason=_without(token, str(status.get("error") or "")))
        return bool(status.get("authenticated"))

    async def try_audiences(self, token: str) -> None:
        """Log an error, once, if the API server does not accept tokens with the configured audiences for itself.

        That may be intended: they may be for other servers. But on a cluster that does not know the audience it is the
        reason why users of such a token get 401.
        """
        if self._audiences_tried:
            return
        self._audiences_tried = True
        try:
            status = await self._review(token.encode(), ())
        except Forbidden:
            return  # no user depends on this check
        except KubeError:
            self._audiences_tried = False  # the next token is tried
            return
        if not status.get("authenticated"):
            log.error(
                "The API server of the target cluster does not accept tokens with the configured audiences; unless they"
                " are for others, set controllers.tokenRequestor.audiences to [], or add them to its --api-audiences",
                audiences=list(self.audiences),
            )

    async def _review(self, token: bytes, audiences: tuple[str, ...]) -> Object:
        spec: Object = {"token": token.decode(errors="replace")}
        if audiences:
            # Without audiences, the API server would check whether the token is for itself.
            spec["audiences"] = list(audiences)
        review = {**TOKEN_REVIEWS.type_meta, "spec": spec}
        status: Object = (await self._client.create(TOKEN_REVIEWS, review)).get("status") or {}
        return status


def read_answer(answer: bytes, *, today: datetime) -> Token:
    """Return the token in the answer to a TokenRequest.

    Raises:
        ReconcileError: there is none.
    """
    try:
        obj = orjson.loads(answer)
        status = obj["status"]
        text, expires = status["token"], parse_time(status["expirationTimestamp"])
        # By the API server's clock, if it is in the answer: ours may differ.
        created = metadata(obj).get("creationTimestamp")
        issued = parse_time(created) if created else today
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ReconcileError("the response is not a TokenRequest") from None
    if not isinstance(text, str) or not text:
        raise ReconcileError("the response to the TokenRequest has no token")
    return Token(text, expires - issued)


def _without(token: bytes, text: str) -> str:
    return redact_text(text.replace(token.decode(errors="replace"), "[redacted]") if token else text)
