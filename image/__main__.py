"""The entry point of the image: `python -m image --config FILE`. See `image.programs`."""

from process.lifetime import begin


def main() -> None:
    begin()
    # Imported late: it takes most of the time of a start.
    from gardener.distribution import version
    from image.programs import PROGRAMS
    from process.program import run

    run(PROGRAMS, version=version())


if __name__ == "__main__":
    main()
