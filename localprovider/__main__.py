"""Entry point of the local provider: `python -m localprovider --config FILE`."""

from typing import TYPE_CHECKING

from process.lifetime import begin

if TYPE_CHECKING:
    from config.local_provider.schema import LocalProviderConfiguration
    from process.program import Compose


def _compose() -> "Compose[LocalProviderConfiguration]":
    from localprovider.app import compose

    return compose


def main() -> None:
    begin()
    # Imported late: this takes most of the startup time.
    from config import local_provider
    from gardener.distribution import version
    from process.program import Program, run

    program = Program(
        name="localprovider",
        summary="Runs the extensions of type local, which create local infrastructure for Shoots.",
        component=local_provider.COMPONENT,
        compose=_compose,
    )
    run((program,), version=version())


if __name__ == "__main__":
    main()
