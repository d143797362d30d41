"""What judges a fault case, and what does its steps in words: registered by the modules of cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cases.runner import Run

Judge = Callable[[Run], None]
Hook = Callable[[Run, int], Any]
JUDGES: dict[str, Judge] = {}
HOOKS: dict[str, Hook] = {}


def judges(case_id: str) -> Callable[[Judge], Judge]:
    def add(function: Judge) -> Judge:
        JUDGES[case_id] = function
        return function

    return add


def hook(case_id: str) -> Callable[[Hook], Hook]:
    def add(function: Hook) -> Hook:
        HOOKS[case_id] = function
        return function

    return add
