"""The command that keeps the index fresh while it runs."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

import typer

from vaultmem.faces.cli.common import Format, is_json, opened
from vaultmem.faces.cli.output import note, print_line
from vaultmem.faces.cli.sync import result_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(watch)


def watch(context: typer.Context, format_: Format = "table") -> None:
    """Keep the index equal to the files until it is stopped."""
    as_json = is_json(format_)
    stop = threading.Event()
    ended_by: list[int] = []

    def end(number: int, frame: object) -> None:
        ended_by.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    def report(result: Any) -> None:
        if as_json:
            print(json.dumps(result_json(result, False)), flush=True)
        else:
            counts = ((getattr(result, name), name) for name in ("added", "changed", "moved", "removed"))
            told = ", ".join(f"{number} {name}" for number, name in counts if number)
            print_line(f"{told} ({result.seconds * 1000:.0f} ms)")

    while not stop.is_set():
        with opened(context) as memory:
            note(f"vaultmem: watching the notes of {memory.config.home}; Ctrl-C ends it")
            memory.watch(stop, report, lambda text: note(f"vaultmem: {text}"))
    if signal.SIGINT in ended_by:
        raise typer.Exit(130)
