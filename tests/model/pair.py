"""A broker and the model side by side; stories that tell them apart, and how they get shorter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

from . import compare
from .broker import Model, Unsure
from .compare import Came, Mismatch
from .operations import Call, Operation, Publishes
from .special import CHOOSING

PICKS_MAX = 3
Counts = list[tuple[str, int, int]]
Story = list[Operation]


class Pair:
    """Does each operation to both and holds what came against what was to come."""

    def __init__(self, driver: Any, model: Model) -> None:
        self.driver = driver
        self.model = model
        self.story: Story = []

    def do(self, operation: Operation) -> None:
        self.story.append(operation)
        self.check(operation)

    def check(self, operation: Operation) -> None:
        came = self.driver.perform(operation)
        self.model = agreeing(self.model, operation, came, self.driver.counts())

    def close(self) -> None:
        self.driver.close()


def agreeing(model: Model, operation: Operation, came: Came, counts: Counts) -> Model:
    """The model behind the operation; raises `Mismatch` when it can't have led to this.

    Where one of several queues is picked, any that fits will do.
    """
    if not _chooses(operation, model):
        step(model, operation, came, counts)
        return model
    scripts: list[tuple[int, ...]] = [()]
    wrong: list[Mismatch] = []
    for script in scripts:
        trial = deepcopy(model)
        trial.script, trial.picked = deque(script), []
        try:
            step(trial, operation, came, counts)
        except Mismatch as error:
            wrong.append(error)
            if not script and trial.picked:
                scripts += product(*map(range, trial.picked[:PICKS_MAX]))
        else:
            return trial
    raise wrong[0]


def _chooses(operation: Operation, model: Model) -> bool:
    exchanges = model.topology.exchanges
    return isinstance(operation, Publishes) and any(
        message.exchange in exchanges and exchanges[message.exchange].type_name in CHOOSING
        for message in operation.messages
    )


def step(model: Model, operation: Operation, came: Came, counts: Counts) -> None:
    compare.step(model, operation, came)
    expected = list(model.visible_queues())
    compare.need(counts == expected, "queues are", counts, "not", expected)


def fails(story: Story, make: Callable[[], Pair]) -> bool:
    """Whether it still tells the two apart; what has lost its channel is left out."""
    pair = make()
    try:
        for operation in story:
            if makes_sense(operation, pair.model):
                pair.do(operation)
    except AssertionError:
        return True
    except Unsure:
        return False
    finally:
        pair.close()
    return False


def makes_sense(operation: Operation, model: Model) -> bool:
    if not isinstance(operation, Call | Publishes):
        return True
    if isinstance(operation, Call) and operation.fields.get("arguments", {}).get("x-from"):
        memory = model.memories.get(operation.fields["exchange"])
        known = memory.numbers.known.values() if memory else ()
        if operation.fields["arguments"]["x-from"] not in known:
            return False
    if isinstance(operation, Publishes) and len(operation.messages) > 1:
        exchanges = model.topology.exchanges
        for message in operation.messages:
            if message.exchange and message.exchange not in exchanges:
                return False
            if message.exchange and exchanges[message.exchange].internal:
                return False
    opens = isinstance(operation, Call) and operation.method == "Channel.Open"
    return opens != (operation.seat in model.channels)


def shortest(story: Story, make: Callable[[], Pair], tries: int = 600) -> Story:
    """Leaves out what it can while the story fails: many operations first, then one by one."""
    size = max(1, len(story) // 2)
    while size:
        for shorter in _without(story, size):
            tries -= 1
            if tries < 0:
                return story
            if fails(shorter, make):
                story = shorter
                break
        else:
            size //= 2
    return story


def _without(story: Story, size: int) -> Iterator[Story]:
    for at in range(len(story) - size, -1, -size):
        yield story[:at] + story[at + size :]
    if size == 1:
        yield from _simpler(story)


def _simpler(story: Story) -> Iterator[Story]:
    """With fewer messages, and messages with fewer properties."""
    for at, operation in enumerate(story):
        if not isinstance(operation, Publishes):
            continue
        messages = operation.messages
        for place, message in enumerate(messages):
            rest = messages[:place] + messages[place + 1 :]
            if rest:
                yield [*story[:at], replace(operation, messages=rest), *story[at + 1 :]]
            for name in message.properties:
                fewer = {key: value for key, value in message.properties.items() if key != name}
                simpler = (
                    *messages[:place], replace(message, properties=fewer), *messages[place + 1 :],
                )  # fmt: skip
                yield [*story[:at], replace(operation, messages=simpler), *story[at + 1 :]]


def told(story: Story) -> str:
    """As it can be pasted into `stories.py`."""
    lines = "".join(f"        {operation},\n" for operation in story)
    return f'    "": (\n{lines}    ),'
