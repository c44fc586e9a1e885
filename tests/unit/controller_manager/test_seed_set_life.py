"""ManagedSeedSets in any order of events: passes that end anywhere, users that interfere, Shoots that fail.

A model of the garden carries out what `decide` returns, in the order in which the controller writes.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent.controller_manager.managed_seed_set.rules.steps import (
    Action,
    Decision,
    Idle,
    Rollout,
    SetObservation,
    Step,
    decide,
)
from gardener.garden.managed_seed_sets import Pending, Replica, name_of, ordinal_of
from kit.seed_sets import managed_seed, replica_shoot, seed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PROTECTED = {"seedmanagement.gardener.cloud/protect-from-deletion": "true"}
ENOUGH = 400


@dataclass
class Thing:
    """One replica, as the API server has it."""

    shoot_revision: str
    operation: str = "Create Processing"
    deleting: bool = False
    managed_seed_revision: str = ""
    registered: bool = False
    managed_seed_deleting: bool = False
    has_seed: bool = False
    is_used: bool = False
    is_protected: bool = False

    def replica(self, name: str) -> Replica:
        health = "healthy" if self.operation.endswith("Succeeded") else "progressing"
        annotations = PROTECTED if self.is_protected else {}
        return Replica(
            shoot=replica_shoot(
                name,
                self.operation,
                health=health,
                deleting=self.deleting,
                revision=self.shoot_revision,
                annotations=annotations,
            ),
            managed_seed=managed_seed(
                name,
                "True" if self.registered else "",
                deleting=self.managed_seed_deleting,
                revision=self.managed_seed_revision,
            )
            if self.managed_seed_revision
            else None,
            seed=seed(name) if self.has_seed else None,
        )


@dataclass
class Garden:
    things: dict[str, Thing] = field(default_factory=dict)
    next_number: int = 0
    pending: Pending | None = None
    target: int = 0
    revision: int = 1
    current: int = 1
    partition: int = 0
    given: list[str] = field(default_factory=list)
    """Names of Shoots, as they were created."""

    def observed(self) -> SetObservation:
        return SetObservation(
            namespace="garden",
            name="set",
            replicas=[thing.replica(name) for name, thing in self.things.items()],
            target=self.target,
            pending=self.pending,
            next_number=self.next_number,
            used_seeds={name for name, thing in self.things.items() if thing.is_used},
            now=NOW,
            max_retries=3,
            pause=0.0,
            rollout=Rollout(current=f"r{self.current}", update=f"r{self.revision}", partition=self.partition),
        )

    def one_pass(self, *, writes: int = 9) -> Decision:
        """Args: writes: after so many the process dies."""
        observed = self.observed()
        decision = decide(observed)
        if isinstance(decision, Step):
            parts = [self.act, self.note]
            if decision.action is Action.CREATE_SHOOT:
                parts.reverse()  # the number is noted before it is used
            for part in parts[:writes]:
                part(decision, observed)
        elif isinstance(decision, Idle) and writes:
            self.pending = None
        return decision

    def note(self, step: Step, observed: SetObservation) -> None:
        pending = Pending(name=step.name, reason=step.reason, since=NOW, retries=step.retries)
        self.pending = pending.following(observed.pending)
        if step.action is Action.CREATE_SHOOT:
            self.next_number = ordinal_of(step.name) + 1

    def act(self, step: Step, observed: SetObservation) -> None:
        name, rollout = step.name, observed.rollout
        assert rollout is not None
        thing = self.things.get(name)
        if step.action is Action.CREATE_SHOOT:
            assert name not in self.given, "a number was given twice"
            assert len(self.things) < self.target
            self.given.append(name)
            self.things[name] = Thing(shoot_revision=rollout.of_new(ordinal_of(name)))
            return
        assert thing is not None
        match step.action:
            case Action.RETRY_SHOOT:
                assert thing.operation.endswith("Failed")
                thing.operation = thing.operation.replace("Failed", "Processing")
            case Action.CREATE_MANAGED_SEED:
                thing.managed_seed_revision = thing.shoot_revision
            case Action.UPDATE_SHOOT:
                others = [each for each in observed.replicas if each.name != name]
                ready_before = next(each for each in observed.replicas if each.name == name).is_ready
                # One that is being updated already may get still newer templates, whatever becomes of others meanwhile.
                begins = ready_before and thing.shoot_revision == thing.managed_seed_revision
                assert not begins or all(each.is_ready for each in others), "two are not ready at once"
                assert ordinal_of(name) >= self.partition
                thing.shoot_revision, thing.operation = rollout.update, "Reconcile Processing"
            case Action.UPDATE_MANAGED_SEED:
                thing.managed_seed_revision, thing.registered = thing.shoot_revision, False
            case Action.DELETE_MANAGED_SEED:
                assert len(self.things) > self.target
                assert not thing.is_used or thing.managed_seed_deleting, "a Seed in use was removed"
                assert not thing.is_protected or thing.managed_seed_deleting, "a protected replica was removed"
                thing.managed_seed_deleting = True
            case Action.DELETE_SHOOT:
                assert len(self.things) > self.target
                assert not thing.has_seed
                assert not thing.managed_seed_revision
                thing.deleting = True
                thing.operation = "Delete Processing"

    def gardenlet(self, name: str, *, fails: bool = False) -> None:
        """One thing that is due for a replica, by the program responsible for it."""
        thing = self.things[name]
        if thing.operation.endswith("Processing"):
            if thing.deleting and not fails:
                del self.things[name]
                return
            thing.operation = thing.operation.replace("Processing", "Failed" if fails else "Succeeded")
        elif thing.managed_seed_deleting:
            if thing.has_seed:
                thing.has_seed = False
            else:
                thing.managed_seed_revision, thing.registered, thing.managed_seed_deleting = "", False, False
        elif thing.managed_seed_revision:
            thing.registered = thing.has_seed = True

    def work(self, rounds: int) -> bool:
        """Whether nothing was left to do in the end."""
        for _ in range(rounds):
            if isinstance(self.one_pass(), Idle):
                return True
            for name in sorted(self.things):
                self.gardenlet(name)
        return False


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.garden = Garden()

    def _any(self, number: int) -> str:
        names = sorted(self.garden.things)
        return names[number % len(names)]

    @rule(writes=st.sampled_from([0, 1, 2, 9, 9, 9]))
    def controller(self, writes: int) -> None:
        self.garden.one_pass(writes=writes)

    @rule(rounds=st.integers(1, 9))
    def all_goes_well(self, rounds: int) -> None:
        self.garden.work(rounds)

    @rule(count=st.integers(0, 4))
    def user_scales(self, count: int) -> None:
        self.garden.target = count

    @rule(partition=st.integers(0, 4))
    def user_sets_partition(self, partition: int) -> None:
        self.garden.partition = partition

    @rule(back=st.booleans())
    def user_changes_templates(self, back: bool) -> None:
        self.garden.revision = self.garden.current if back else self.garden.revision + 1

    @precondition(lambda self: self.garden.things)
    @rule(number=st.integers(0, 9), fails=st.booleans())
    def gardenlet(self, number: int, fails: bool) -> None:
        self.garden.gardenlet(self._any(number), fails=fails)

    @precondition(lambda self: self.garden.things)
    @rule(number=st.integers(0, 9), is_used=st.booleans(), is_protected=st.booleans())
    def user_uses_or_protects(self, number: int, is_used: bool, is_protected: bool) -> None:
        thing = self.garden.things[self._any(number)]
        thing.is_used, thing.is_protected = is_used and thing.has_seed, is_protected

    @precondition(lambda self: self.garden.things)
    @rule(number=st.integers(0, 9))
    def user_removes_a_shoot_by_force(self, number: int) -> None:
        del self.garden.things[self._any(number)]

    @precondition(lambda self: self.garden.things)
    @rule(number=st.integers(0, 9))
    def user_deletes_a_managed_seed(self, number: int) -> None:
        thing = self.garden.things[self._any(number)]
        thing.managed_seed_deleting = bool(thing.managed_seed_revision)

    @invariant()
    def numbers_were_given_in_order(self) -> None:
        ordinals = [ordinal_of(name) for name in self.garden.given]
        assert ordinals == sorted(set(ordinals))
        assert [name_of("set", ordinal) for ordinal in ordinals] == self.garden.given

    def teardown(self) -> None:
        """If nothing interferes any more, the set becomes what it is to be."""
        garden = self.garden
        for thing in garden.things.values():
            thing.is_used = thing.is_protected = False
        assert garden.work(ENOUGH), f"it does not come to an end: {garden}"
        assert len(garden.things) == garden.target
        assert all(thing.replica(name).is_ready for name, thing in garden.things.items())
        for name, thing in garden.things.items():
            assert thing.shoot_revision == thing.managed_seed_revision
            if ordinal_of(name) >= garden.partition:
                assert thing.shoot_revision == f"r{garden.revision}"


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
