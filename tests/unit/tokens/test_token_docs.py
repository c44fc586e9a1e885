"""What `docs/tokens.md` states about keys and reasons is what there is."""

import re
from pathlib import Path

from agent.resource_manager.token_invalidator.rules import SECRET_TYPE, SERVICE_ACCOUNT_UID
from agent.shared.token_requestor.reconcile import FAILED, INVALID, KUBECONFIG_REMOVED
from agent.shared.token_requestor.token_secret import ANNOTATIONS, DATA
from gardener import keys

TEXT = (Path(__file__).parents[3] / "docs/tokens.md").read_text()
KEYS = {
    *(keys.PURPOSE, keys.PURPOSE_TOKEN_INVALIDATOR, keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS),
    *(keys.TOKEN_INVALIDATOR_CONSIDER, keys.TOKEN_INVALIDATOR_SKIP),
    *ANNOTATIONS,
}


def test_all_keys_and_reasons_are_explained() -> None:
    others = {SECRET_TYPE, SERVICE_ACCOUNT_UID, *DATA, INVALID, FAILED, KUBECONFIG_REMOVED}
    assert {value for value in KEYS | others if f"`{value}`" not in TEXT} == set()


def test_no_others_are_named() -> None:
    named = set(re.findall(r"`((?:[a-z-]+\.)*resources\.gardener\.cloud/[a-z-]+)`", TEXT))
    assert named <= KEYS
    assert len(named) > 10
