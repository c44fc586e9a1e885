"""The admission server, `python -m webhooks --config FILE`, and what is done around it: see `webhooks.program`."""

from process.lifetime import begin


def main() -> None:
    begin()
    # Not before: this takes most of the time of a start.
    from webhooks.program import start

    start()


if __name__ == "__main__":
    main()
