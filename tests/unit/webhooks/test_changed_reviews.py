"""Reviews whose fields are changed at random: patches apply and are idempotent, nothing crashes, no code is 500.

REVIEW_FUZZ=50000 REVIEW_FUZZ_SEED=7: so many, and others.
"""

import json
import os
import random

from fuzz import admission
from kit.webhooks.changed_reviews import changed

COUNT, SEED = int(os.environ.get("REVIEW_FUZZ", "1500")), int(os.environ.get("REVIEW_FUZZ_SEED", "1"))


def test_a_review_whose_fields_are_changed_is_answered_as_it_should_be() -> None:
    chance, reviews = random.Random(SEED), list(admission.reviews())
    paths = sorted({path for path, _ in reviews})
    for number in range(COUNT):
        path, review = chance.choice(reviews)
        requested = path if chance.random() < 0.85 else chance.choice(paths)
        body = json.dumps(changed(review, chance)).encode()
        try:
            admission.ask(requested, body)
        except Exception as error:
            error.add_note(f"review {number}: {requested} {body[:20_000]!r}")
            raise


def test_a_review_without_a_namespace_is_no_mistake_of_the_server() -> None:
    path = "/webhooks/high-availability-config"
    review = next(review for of, review in admission.reviews() if of == path)
    admission.ask(path, json.dumps({**review, "request": {**review["request"], "namespace": ""}}).encode())
