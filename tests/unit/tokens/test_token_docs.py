"""What `docs/tokens.md` tells about keys and reasons is what there is."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from agent.token_invalidator import keys as invalidator_keys
from agent.token_requestor import keys as requestor_keys

TEXT = (Path(__file__).parents[3] / "docs/tokens.md").read_text()


def constants(module: ModuleType) -> set[str]:
    values = {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    return values - {module.GROUP}


@pytest.mark.parametrize("module", [requestor_keys, invalidator_keys], ids=["requestor", "invalidator"])
def test_all_keys_and_reasons_are_explained(module: ModuleType) -> None:
    unexplained = {value for value in constants(module) if f"`{value}`" not in TEXT}
    assert unexplained <= {invalidator_keys.SERVICE_ACCOUNT_NAME}


def test_no_others_are_named() -> None:
    named = set(re.findall(r"`((?:[a-z-]+\.)*resources\.gardener\.cloud/[a-z-]+)`", TEXT))
    assert named <= constants(requestor_keys) | constants(invalidator_keys)
    assert len(named) > 10
