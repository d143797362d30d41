"""What CI runs and what a developer runs are the same words: `nox`, or `nox -s tests`."""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "types", "tests", "docs"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint."""
    session.install("ruff==0.17.6")
    session.run("ruff", "format", "--check", "vaultmem", "tests", "bench", "noxfile.py")
    session.run("ruff", "check", "vaultmem", "tests", "bench", "noxfile.py")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types."""
    session.install(".", "mypy==2.4.1", "types-PyYAML")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those of the documents."""
    session.install(".", "pytest>=8", "hypothesis>=6.100")
    session.run("pytest", "--ignore=tests/docs", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documents are true: every command in them exists and runs."""
    session.install(".", "pytest>=8", "hypothesis>=6.100")
    session.run("pytest", "tests/docs", *session.posargs)
