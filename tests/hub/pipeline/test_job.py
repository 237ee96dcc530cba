"""Parameters of jobs are read by their types, and what they can't be is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from warrenmq.hub.pipeline.errors import OptionError
from warrenmq.hub.pipeline.jobs.job import Job, parameter, parameters_of, read_parameters
from warrenmq.hub.pipeline.jobs.registry import JOBS, find_job


@dataclass(frozen=True, slots=True)
class Parameters:
    rows: int = parameter(10, "How many.", low=1, high=100)
    share: float = parameter(0.5, "How much.", low=0)
    loud: bool = parameter(False, "Whether to shout.")
    mode: str = parameter("append", "How.", choices=("append", "update"))
    key: str = parameter("#", "Which.")


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


def job(parameters: type[Any]) -> Job[Any]:
    return Job("example", "An example.", parameters, lambda *_: None)


def test_values_are_read_by_their_types() -> None:
    given = {"rows": "100", "share": "2", "loud": "True", "mode": "update", "key": ""}
    assert read_parameters(job(Parameters), given) == Parameters(100, 2.0, True, "update", "")
    assert read_parameters(job(Parameters), {}) == Parameters()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("rows", "0", "rows='0': give a whole number of 1 or more up to 100"),
        ("rows", "1.5", "rows='1.5': give a whole number"),
        ("share", "-1", "share='-1': give a number of 0 or more"),
        ("share", "nan", "share='nan': give a number"),
        ("share", "inf", "share='inf': give a number"),
        ("loud", "yes", "loud='yes': give true or false"),
        ("mode", "complete", "mode='complete': give append or update"),
        ("row", "1", "parameter 'row' is unknown; did you mean 'rows'? example has rows, share"),
    ],
)
def test_values_that_are_refused(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_parameters(job(Parameters), {name: value})
    assert reason in str(caught.value)


def test_a_job_without_parameters() -> None:
    with pytest.raises(OptionError, match="parameter 'a' is unknown: example has none"):
        read_parameters(job(Nothing), {"a": "1"})


def test_all_jobs_describe_themselves_and_their_parameters() -> None:
    for name, one in JOBS.items():
        assert find_job(name) is one and one.name == name
        texts = [one.description, *(parameter.description for parameter in parameters_of(one))]
        assert all(text.endswith(".") and text[0].isupper() for text in texts)
        read_parameters(one, {p.name: str(p.default) for p in parameters_of(one)})


def test_an_unknown_job() -> None:
    with pytest.raises(OptionError, match="job 'archiv' is unknown; did you mean 'archive'"):
        find_job("archiv")
