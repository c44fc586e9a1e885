"""Runs the tasks of a flow once, one after the other."""

import structlog

from agent.gardenlet.flow.graph import Graph, O
from agent.gardenlet.flow.run import carry_out
from components.results import Results
from gardener.difference_reports import UnknownTask
from kube.runtime.controller import failure_of

_NOT_YET = "an object that it reads does not exist yet"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def run_once(graph: Graph[O], operation: O, results: Results) -> list[UnknownTask]:
    """Return the tasks that can't run before other changes have been made; their dependents are skipped."""
    left_out, unknown, stuck = graph.left_out(operation), list[UnknownTask](), set[str]()
    for each in graph.order:
        task = graph.tasks[each]
        if not stuck.isdisjoint(task.after):
            stuck.add(each)
        elif each not in left_out:
            try:
                await carry_out(operation, results, task)
            except Exception as error:  # noqa: BLE001 - tasks rely on the results of earlier ones
                failure = failure_of(error)
                log.info("A task has no preview", task=task.name, error=failure.text)
                stuck.add(each)
                unknown.append(UnknownTask(task.name, _NOT_YET if failure.is_panic else failure.text))
    return unknown
