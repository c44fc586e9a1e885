"""`python -m tests.kit.processes.quick_agent`: the agent, whose configuration may have periods as short as a test wants.

In production the shortest ones protect the API server; here they would only be waited for.
"""

from process.configuration import checks

_lasts_at_least = checks.lasts_at_least
checks.lasts_at_least = lambda seconds, detail="": _lasts_at_least(min(seconds, 0), detail)

from agent.__main__ import main  # noqa: E402 - only now: the checks are made when the schema is imported

if __name__ == "__main__":
    main()
