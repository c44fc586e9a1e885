"""What `kubectl gardener kubeconfig` shows in a garden that makes none."""

import pytest

from kube.errors import NoStatus, ServerFailure
from kubectl.garden.commands.kubeconfig import no_server


@pytest.mark.parametrize(
    ("error", "text", "hint"),
    [
        (
            NoStatus(404, "404 page not found"),
            "this garden has no server that makes kubeconfigs",
            "install the webhook server of a garden, with APIService v1alpha1.authentication.gardener.cloud",
        ),
        (
            ServerFailure(503, message="service unavailable"),
            "the server that makes kubeconfigs does not answer: service unavailable",
            "kubectl get apiservice v1alpha1.authentication.gardener.cloud",
        ),
    ],
)
def test_it_reports_who_has_to_do_what(error: NoStatus | ServerFailure, text: str, hint: str) -> None:
    made = no_server(error)
    assert text in str(made)
    assert hint in made.hint
