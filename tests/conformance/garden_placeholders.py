"""Placeholders in recordings of a garden: names of a Project, versions of Kubernetes, and moments from now on.

| | |
|---|---|
| `$P`, `$NS` | a Project, and its namespace |
| `$M0.4` | patch version 4 of the oldest minor version of Kubernetes; `$M1` is the next one |
| `$NOW-1h` | a moment in RFC 3339; `$MICRO-1h` with microseconds |
| `$UNIX+1h` | a moment in seconds since 1970 |
| `$WIN+30m` | a moment as maintenance time windows write it |
| `$CRON+2m`, `$CRX+2m` | the minute of a day, as a cron schedule; the second one by `*/1` |
| `$DAY` | the day of the week, in the way of cron |
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

OLDEST_MINOR = 28

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_MOMENT = re.compile(r"\$(NOW|MICRO|UNIX|WIN|CRON|CRX|DAY)(?:([+-]\d+)([smhd]))?")
_WRITTEN: dict[str, Callable[[datetime], str]] = {
    "NOW": lambda then: then.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "MICRO": lambda then: then.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    "UNIX": lambda then: str(int(then.timestamp())),
    "WIN": lambda then: then.strftime("%H%M00+0000"),
    "CRON": lambda then: f"{then.minute} {then.hour} * * *",
    "CRX": lambda then: f"{then.minute} {then.hour} */1 * *",
    "DAY": lambda then: str(then.isoweekday() % 7),
}


def filled(value: Any, project: str) -> Any:
    return json.loads(filled_text(json.dumps(value), project))


def filled_text(text: str, project: str) -> str:
    now = datetime.now(UTC)

    def moment(match: re.Match[str]) -> str:
        then = now + timedelta(**{_UNITS[match[3]]: int(match[2])}) if match[2] else now
        return _WRITTEN[match[1]](then)

    text = text.replace("$NS", f"garden-{project}").replace("$P", project)
    return re.sub(r"\$M(\d)", lambda match: f"1.{OLDEST_MINOR + int(match[1])}", _MOMENT.sub(moment, text))
