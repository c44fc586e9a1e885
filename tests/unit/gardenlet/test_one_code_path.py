"""The gardenlet has no special case for a provider of seeds: these serve what every seed serves."""

import re

from kit.packages import PROJECT

MENTION = re.compile(r"local[_. ]?(profile|provider)|is_local\b|on_this_computer", re.IGNORECASE)


def test_gardenlet_and_components_do_not_mention_the_local_provider() -> None:
    places = [PROJECT / each for each in ("agent/gardenlet", "components", "config/gardenlet")]
    sources = [file for place in places for suffix in ("py", "yaml") for file in place.rglob(f"*.{suffix}")]
    assert sources
    assert not [f"{file}: {found[0]}" for file in sources for found in MENTION.finditer(file.read_text())]
