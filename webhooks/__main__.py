"""Entry point of the admission server, `python -m webhooks --config FILE`, and of its tools; see `webhooks.program`."""

from process.lifetime import begin


def main() -> None:
    begin()
    # Imported late: this takes most of the startup time.
    from webhooks.program import start

    start()


if __name__ == "__main__":
    main()
