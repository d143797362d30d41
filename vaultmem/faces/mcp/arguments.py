"""Tool arguments as clients really send them: null, the text "null", numbers and lists as text.

Source: cases/mcp.yaml (what clients were seen to send) and reference/mcp-tools.md (what they mean).
A value that can't be meant is one error that names the argument and what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vaultmem.base.errors import UsageError

_ABSENT = ("", "null", "none", "undefined")
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. `kind`: text | choice | number | flag | tags; `default` None means required text."""

    name: str
    kind: str
    description: str
    default: Any = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    def schema(self) -> dict[str, Any]:
        """Return its JSON schema: what is accepted, so null and text forms too."""
        if self.required:
            return {"type": "string", "description": self.description}
        told = {"description": self.description, "default": self.default if self.default != "" else None}
        if self.kind == "choice":
            return {"type": ["string", "null"], "enum": [*self.choices, None], **told}
        if self.kind == "number":
            return {"type": ["integer", "string", "null"], "minimum": self.low, "maximum": self.high, **told}
        if self.kind == "flag":
            return {"type": ["boolean", "string", "null"], **told}
        if self.kind == "tags":
            return {"type": ["string", "array", "null"], "items": {"type": "string"}, **told}
        return {"type": ["string", "null"], **told}


def clean(arguments: Mapping[str, Any] | None, wanted: tuple[Argument, ...]) -> tuple[dict[str, Any], list[str]]:
    """Return the values by name with defaults, and the names of unknown arguments. Raises UsageError."""
    given = dict(arguments or {})
    values = {argument.name: _value(argument, given.pop(argument.name, None)) for argument in wanted}
    return values, sorted(given)


def _value(argument: Argument, value: Any) -> Any:
    if argument.required:
        if not isinstance(value, str):  # never told back: it may be a memory's text
            raise UsageError(f"{argument.name} must be a text", f"Pass {argument.name} as a string")
        return value
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return () if argument.kind == "tags" else argument.default
    reader = {"choice": _choice, "number": _number, "flag": _flag, "tags": _tags}.get(argument.kind, _text)
    return reader(argument, value)


def _refused(argument: Argument, value: Any, allowed: str) -> UsageError:
    shown = json.dumps(value, ensure_ascii=False, default=str)[:60]
    return UsageError(f"{argument.name} is {shown}", f"Allowed: {allowed}")


def _text(argument: Argument, value: Any) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value).strip()
    raise _refused(argument, type(value).__name__, "a text")


def _choice(argument: Argument, value: Any) -> str:
    text = str(value).strip().lower() if isinstance(value, str) else ""
    if text not in argument.choices:
        raise _refused(argument, value, ", ".join(argument.choices))
    return text


def _number(argument: Argument, value: Any) -> int:
    allowed = f"a whole number from {argument.low} to {argument.high}"
    try:
        if isinstance(value, bool) or float(value) != int(float(value)):
            raise ValueError
        number = int(float(value))
    except (TypeError, ValueError, OverflowError):
        raise _refused(argument, value, allowed) from None
    if not argument.low <= number <= argument.high:
        raise _refused(argument, value, allowed)
    return number


def _flag(argument: Argument, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise _refused(argument, value, "true or false")
    return text in _TRUE


def _tags(argument: Argument, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            value = value.strip().strip("[]")
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise _refused(argument, type(value).__name__, "tags separated by commas, or a list of texts")
    return tuple(item.strip() for item in items if item.strip())
