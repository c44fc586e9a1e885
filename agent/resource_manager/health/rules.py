"""The rules that the configuration adds to the built-in ones. What is wrong with an expression ends the start."""

from collections.abc import Iterator

from agent.resource_manager.health.evaluation import Evaluator
from config.errors import ConfigError
from config.resource_manager.controllers import Health
from gardener.health.checks import expressions
from gardener.health.checks.expressions import CURRENT, FAILED, IN_PROGRESS, Expression, InvalidExpression
from gardener.health.checks.kstatus import is_custom
from gardener.health.checks.registry import Rules, has_rule
from gardener.health.checks.rule import Rule
from kube.objects import group_of
from kube.validation import FieldError, duplicate, forbidden, invalid

_PATH = "controllers.health.healthCheckExprs"


def rules_of(settings: Health) -> Rules:
    """Raises ConfigError."""
    configured: dict[tuple[str, str], Rule] = {}
    errors: list[FieldError] = []
    evaluator = Evaluator()
    try:
        for index, given in enumerate(settings.health_check_exprs):
            path, name = f"{_PATH}[{index}]", (group_of(given.api_version), given.kind)
            found = [*_kind_errors(path, *name)]
            compiled: dict[str, Expression] = {}
            if name in configured:
                found.append(duplicate(f"{path}.kind", f"{name[1]}.{name[0]}"))
            for field, text in ((IN_PROGRESS, given.in_progress), (FAILED, given.failed), (CURRENT, given.current)):
                try:
                    if text:
                        compiled[field] = Expression(text)
                except InvalidExpression as error:
                    found.append(invalid(f"{path}.{field}", text, f"of {given.kind}: {error}"))
            if not found:
                configured[name] = expressions.rule(*name, compiled, evaluate=evaluator.first_true)
            errors += found
    except ImportError as error:
        detail = (
            "the library for CEL is not installed: install the package with the extra `cel`, use an image that has it,"
            " or remove the expressions"
        )
        raise ConfigError([forbidden(_PATH, detail)]) from error
    if errors:
        raise ConfigError(errors)
    return Rules(configured=configured, kstatus=settings.kstatus)


def _kind_errors(path: str, group: str, kind: str) -> Iterator[FieldError]:
    if not is_custom(group):
        yield forbidden(f"{path}.apiVersion", "expressions are for custom resources only")
    elif has_rule(group, kind):
        yield forbidden(f"{path}.kind", f"{kind} has a rule of its own, which can't be replaced")
