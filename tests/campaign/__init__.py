"""A fault campaign: agents and webhooks at work while everything around them goes wrong, and then the question what is so.

    python -m tests.campaign --minutes 10 --seed 7

A seed makes a plan: what users do, and which faults strike when. The same seed makes the same plan; the order in which
processes meet it is theirs, so a violation may need some runs of its seed to show again.

    model.py       what users want, as plain data, and their edits of it
    moves.py       what moves between two agents, step by step: pure
    plan.py        seed -> edits and strikes with their times
    manifests.py   model -> what users write, and what has to come of it
    oracles.py     what is seen, compared with what has to be: pure
    world.py       writes what users want, whatever fails; takes snapshots
    stage.py       two clusters, proxies, two agents and one of another class, two webhook servers
    replicas.py    the processes, and who restarts them when they end
    credentials.py tokens and certificates of the processes, and who renews them
    admissions.py  users who create pods all the time
    strikes.py     carries strikes out, and heals
    faults/        each fault: inject, heal
    run.py         one run, from start to end
    report.py      what came of it, for people and as JSON
"""
