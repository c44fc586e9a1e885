"""The agent: `python -m agent --config FILE`. See `agent.programs`."""

from process.lifetime import begin


def main() -> None:
    begin()
    # Imported late: it takes most of the time of a start.
    from agent.programs import PROGRAMS
    from gardener.distribution import version
    from process.program import run

    run(PROGRAMS, version=version())


if __name__ == "__main__":
    main()
