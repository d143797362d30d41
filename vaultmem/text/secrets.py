"""The secret gate: text to the name of the pattern that it matches; the text itself never leaves.

Shapes: reference/vault.md, "Secret patterns", and the vendors' published token formats. A plain
`in` for a keyword goes before each expression, so that ordinary notes cost little.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from vaultmem.base.characters import rewritten

_PLACEHOLDER = re.compile(
    r"^(?:<.*>|\$\{?.*|\{\{.*|\[.*\]|[xX*.•_-]+|(?:your|my|the|example|placeholder|changeme|redacted|none|null|true|"
    r"false|todo|secret|password|env|os\.|process\.|getenv|config|settings?)\b.*)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A recognised shape: the pattern's name and the 1-based line of the text."""

    pattern: str
    line: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`longest_word`: every match holds one of so many characters; `spaced`: it may lie in several words.

    `possible`: asked with (the text in lower case, its long words) where looking for the keywords takes longer.
    """

    name: str
    keywords: tuple[str, ...]
    expression: re.Pattern[str]
    longest_word: int
    spaced: bool
    possible: Callable[[str, str], bool] | None


_MIN_TOKEN = 14
_SPACED = {
    "aws_secret_access_key": 40,
    "pem_private_key": 0,
    "twilio_key": 34,
    "discord_token": 58,
    "bearer_token": 16,
    "secret_assignment": 0,
}
"""Patterns whose matches may hold blanks, each with the length of the word that they hold at least."""


_DIGIT = re.compile(r"\d")
_SECRET_NAMES = ("password", "passwd", "secret", "pwd")
_FEW_SIGNS = 8


def _has_digit(lower: str, long_words: str) -> bool:
    """Tell whether a long word has a digit, as a bearer token must."""
    return _DIGIT.search(long_words) is not None


def _may_assign(lower: str, long_words: str) -> bool:
    """Tell whether a colon or equals sign may follow a name of secrets (any of many signs may)."""
    looked_at = 0
    for sign in ":=":
        at = lower.find(sign)
        while at >= 0:
            looked_at += 1
            if looked_at > _FEW_SIGNS or lower[:at].rstrip().rstrip("\"'`*").endswith(_SECRET_NAMES):
                return True
            at = lower.find(sign, at + 1)
    return False


_POSSIBLE = {"bearer_token": _has_digit, "secret_assignment": _may_assign}


def _pattern(name: str, keywords: str, expression: str) -> _Pattern:
    longest_word = _SPACED.get(name, _MIN_TOKEN)
    possible = _POSSIBLE.get(name)
    return _Pattern(name, tuple(keywords.split("|")), re.compile(expression), longest_word, name in _SPACED, possible)


_PATTERNS = (
    _pattern("aws_access_key", "akia|asia", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _pattern(
        "aws_secret_access_key",
        "aws|secret",
        r"(?i:aws.{0,24}(?:secret|access).{0,24}|secret_?access_?key\W{0,6})[\"'\s:=]+"
        r"(?=[A-Za-z0-9/+]*[a-z])(?=[A-Za-z0-9/+]*[A-Z])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    _pattern("pem_private_key", "-----begin", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    _pattern("anthropic_api_key", "sk-ant-", r"(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{20,}"),
    _pattern(
        "openai_api_key", "sk-", r"(?<![A-Za-z0-9])sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})"
    ),
    _pattern("github_fine_grained_pat", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _pattern("github_pat", "ghp_|gho_|ghu_|ghs_|ghr_", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,}"),
    _pattern("gitlab_pat", "glpat-", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
    _pattern("slack_token", "xox|xapp-", r"(?<![A-Za-z0-9])(?:xox[a-z]-|xapp-)\d[A-Za-z0-9-]{9,}"),
    _pattern("slack_webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    _pattern(
        "stripe_key", "_live_|whsec_", r"(?<![A-Za-z0-9])(?:(?:sk|rk)_live_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,})"
    ),
    _pattern("google_api_key", "aiza", r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _pattern("sendgrid_key", "sg.", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _pattern("twilio_key", "twilio", r"(?i:twilio).{0,60}?(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    _pattern("npm_token", "npm_", r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _pattern("pypi_token", "pypi-", r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{60,}"),
    _pattern("huggingface_token", "hf_", r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,}"),
    _pattern("telegram_bot_token", ":aa", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    _pattern(
        "discord_token",
        "discord",
        r"(?i:discord).{0,40}?[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    _pattern("jwt", "eyj", r"(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{8,})\.(eyJ[A-Za-z0-9_-]{8,})\.[A-Za-z0-9_-]{16,}"),
    _pattern("url_password", "://", r"://[^\s/:@\"'<>]{1,64}:([^\s/@\"'<>]{3,128})@[A-Za-z0-9.-]+"),
    _pattern(
        "bearer_token",
        "bearer|api|token",
        r"(?i)\b(?:bearer|api[ _-]?key|(?:auth|access|refresh|api|secret|bot)[ _-]?token|token)[\"']?(?:\s*[:=]\s*|\s+)"
        r"(?:bearer\s+)?[\"'`]?(?=[^\s\"'`]*\d)(?=[^\s\"'`]*[A-Za-z])([A-Za-z0-9_.~+/=-]{16,})",
    ),
    _pattern(
        "secret_assignment",
        "passw|secret|pwd",
        rf"(?i)(?:{'|'.join(_SECRET_NAMES)})"
        r"[\"'`*]*\s*[:=]\s*(?:([\"'`])([^\s\"'`]{6,})\1|([^\s\"'`,;|)]{6,}))",
    ),
)
_UUID = re.compile(r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE)


def _visible(text: str) -> str:
    """Drop invisible characters (Cf, variation selectors, the grapheme joiner): they can hide a key."""
    return rewritten(text, _visible_part)


@lru_cache(maxsize=4_096)
def _visible_part(char: str) -> str:
    invisible = (
        unicodedata.category(char) == "Cf"
        or "\ufe00" <= char <= "\ufe0f"
        or char == "\u034f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )
    return "" if invisible else char


def find_secret(text: str) -> SecretMatch | None:
    """Return the first recognised secret of a text (name and line), or None."""
    shown = _visible(text)
    lower = shown.lower()
    words = _long_words(lower)
    long_words, longest = " ".join(words), max(map(len, words), default=0)
    for pattern in _PATTERNS:
        if longest < pattern.longest_word:
            continue
        if pattern.possible is not None and not pattern.possible(lower, long_words):
            continue
        where = lower if pattern.spaced else long_words
        for keyword in pattern.keywords:
            if keyword in where:
                break
        else:
            continue
        for start, end in _windows(lower, pattern.keywords, len(shown)):
            for match in pattern.expression.finditer(shown, start, end):
                if _is_real(pattern.name, match):
                    return SecretMatch(pattern.name, shown.count("\n", 0, match.start()) + 1)
    return None


def _long_words(text: str) -> list[str]:
    """Return what may hold a token of `_MIN_TOKEN` characters: the stretches without ASCII blanks of so many bytes."""
    data = text.encode("utf-8", "surrogatepass")
    shape = data.translate(_SHAPE)
    words = []
    at = shape.find(_LONG)
    while at >= 0:
        end = shape.find(b" ", at)
        end = len(data) if end < 0 else end
        words.append(data[at:end].decode("utf-8", "surrogatepass"))
        at = shape.find(_LONG, end)
    return words


_SHAPE = bytes(ord(" " if chr(code).isspace() else "a") for code in range(128)).ljust(256, b"a")
_LONG = b"a" * _MIN_TOKEN

_BEFORE, _AFTER = 80, 320
"""How far from its keyword a pattern can begin and end; longer tokens match with their start."""


def _windows(lower: str, keywords: tuple[str, ...], length: int) -> Iterator[tuple[int, int]]:
    """Yield the merged stretches of text around the keywords; all of it if lower-casing moved offsets."""
    if len(lower) != length:
        yield 0, length
        return
    places = []
    for keyword in keywords:
        at = lower.find(keyword)
        while at >= 0:
            places.append(at)
            at = lower.find(keyword, at + len(keyword))
    start = end = -1
    for at in sorted(places):
        if at - _BEFORE > end:
            if end >= 0:
                yield start, end
            start = max(0, at - _BEFORE)
        end = min(length, at + _AFTER)
    if end >= 0:
        yield start, end


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """Replace every recognised secret by `[REDACTED:<name>]`; return the text and the names."""
    shown = _visible(text)
    names: list[str] = []
    for pattern in _PATTERNS:
        if not any(keyword in shown.lower() for keyword in pattern.keywords):
            continue

        def replacement(match: re.Match[str], name: str = pattern.name) -> str:
            if not _is_real(name, match):
                return match.group()
            names.append(name)
            return f"[REDACTED:{name}]"

        shown = pattern.expression.sub(replacement, shown)
    return (shown, tuple(dict.fromkeys(names))) if names else (text, ())


def _is_real(name: str, match: re.Match[str]) -> bool:
    """Rule out look-alikes that the expression alone can't."""
    if name == "jwt":
        return all(_is_json_object(part) for part in match.groups())
    if name == "bearer_token":
        value = match.group(1)
        return not (_PLACEHOLDER.match(value) or _UUID.match(value) or value.startswith(("/", "./", "http")))
    if name == "url_password":
        return not _PLACEHOLDER.match(match.group(1))
    if name == "secret_assignment":
        quoted, value = match.group(2), match.group(2) or match.group(3)
        if _PLACEHOLDER.match(value) or value.startswith(("[[", "http", "/", "(")):
            return False
        return bool(quoted) or _looks_random(value)
    return True


def _looks_random(value: str) -> bool:
    """Tell a password from a word: digits or signs among letters, or capitals inside."""
    core = value.strip(".,;:!?\"'`*_)(")
    if len(core) < 6 or not any(char.isalpha() for char in core):
        return False
    return any(char.isdigit() for char in core) or bool(re.search(r"[a-z][A-Z]|[!@#$%^&*+=~]", core))


def _is_json_object(part: str) -> bool:
    """Tell whether a base64url part is a JSON object (a part of it will do: tokens get cut)."""
    try:
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return False
    try:
        return isinstance(json.loads(decoded), dict)
    except ValueError:
        return decoded[:2] == b'{"' and decoded[2:3].isalpha()
