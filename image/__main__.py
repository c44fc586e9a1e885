"""The entry point of the image: `python -m image --config FILE`. See `image.programs`."""

from typing import Never

from process.lifetime import begin


def main() -> Never:
    begin()
    # Not before: this takes most of the time of a start.
    from image.programs import PROGRAMS
    from process.program import run

    run(PROGRAMS)


if __name__ == "__main__":
    main()
