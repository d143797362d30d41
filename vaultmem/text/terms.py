"""Terms: the token stream of a document, and the terms that a query asks for.

The full-text engines split our stream at everything that is neither an ASCII letter or digit
nor beyond ASCII, and ignore ASCII letter case; so plain English text is its own stream. What the
stream adds or rewrites: accented words also without accents, CJK runs as bigrams, the parts of
CamelCase words. Compounds (`snake_case`, `kebab-case`, dotted names, paths) are asked for as a
phrase of their parts. English inflections are asked for by the query, never indexed: exact forms
are searched first and rank above them, and the index stays small (a departure from design.md §6
in place only: stems in the index cost a third more tokens and found no more of the planted facts).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from vaultmem.base.characters import beyond_ascii, rewritten

_BREAK = " \u241f "
"""Stands between text and added terms, so that no phrase spans them."""
_CJK = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts written without blanks between words (Thai and Lao, Burmese, Khmer, Kana, Han, Hangul)."""
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(r"[a-z0-9\u0080-\U0010ffff]+")
_ASCII_WORDS = bytes(ord(chr(code).lower() if chr(code).isalnum() else " ") for code in range(128)).ljust(256)
"""The same split for texts of ASCII alone, in a third of the time."""
_CASES = bytes(ord("A" if chr(code).isupper() else "a" if chr(code).isalnum() else " ") for code in range(128))
_CASES += b"a" * 128
_CAPITAL = re.compile(r"[A-Z](?<=[^\W_][A-Z])")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_CAMEL = 64
_FOLDS = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th"})


@lru_cache(maxsize=8_192)
def _kept(char: str) -> str:
    """Return what stands for a character beyond ASCII: itself, a blank or nothing, by Unicode category."""
    category = unicodedata.category(char)
    if category == "Cf" or "\ufe00" <= char <= "\ufe0f":
        return ""
    return char if category[0] in "LNM" or category in ("So", "Sk", "Co") else " "


@dataclass(frozen=True, slots=True)
class Phrase:
    """Adjacent tokens; `prefix`: the last one may go on."""

    tokens: tuple[str, ...]
    prefix: bool = False


Clause = tuple[Phrase, ...]
"""Alternatives, one of which must be there."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a query text asks for, from strict to loose.

    `exact`: every clause as written; `inflected`: every clause in some form; `partial`: any of the
    words as written or any part of one; `loose`: any of these in some form; `words`: the words to
    mark in snippets. All empty when nothing is searchable.
    """

    exact: tuple[Clause, ...] = ()
    inflected: tuple[Clause, ...] = ()
    partial: tuple[Clause, ...] = ()
    loose: tuple[Clause, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.exact)


def document_stream(text: str) -> str:
    """Return the token stream of a document's text."""
    camel = _camel_parts(text)
    if text.isascii():
        return text + _BREAK + " ".join(camel) if camel else text
    stream = _normalised(text)
    extra = camel
    beyond = beyond_ascii(stream)
    unbroken = {char for char in beyond if _CJK_RUN.match(char)}
    if len(unbroken) < len(beyond):
        for chunk in {chunk for chunk in stream.split() if not chunk.isascii()}:
            extra += [folded for word in _WORD.findall(chunk) if (folded := fold_word(word)) != word]
    if unbroken:
        stream = _CJK_RUN.sub(_bigrams, stream)
    return stream + _BREAK + " ".join(sorted(extra)) if extra else stream


def _normalised(text: str) -> str:
    return rewritten(unicodedata.normalize("NFC", text).lower(), _kept)


def _bigrams(match: re.Match[str]) -> str:
    """A run of CJK as overlapping pairs, and its last character, so that prefixes find each one."""
    run = match.group()
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return f" {' '.join(pairs)} {run[-1]} "


@lru_cache(maxsize=65_536)
def fold_word(word: str) -> str:
    """Return a lower-case word without accents and compatibility forms; CJK stays."""
    if word.isascii() or _CJK_RUN.search(word):
        return word
    plain = unicodedata.normalize("NFKD", word.translate(_FOLDS))
    folded = "".join(char for char in plain if not unicodedata.combining(char)).lower()
    return folded if _WORD.fullmatch(folded) else word


def _camel_parts(text: str) -> list[str]:
    """Return the parts of words with capitals inside (`parseYaml`, `HTTPServer2Go`), in lower case."""
    parts: list[str] = []
    *before, _ = text.encode("utf-8", "surrogatepass").translate(_CASES).split(b"A")  # capitals are few
    if not any(piece.endswith(b"a") for piece in before) and b"" not in before[1:]:
        return parts
    end = 0
    for match in _CAPITAL.finditer(text):
        at = match.start()
        if at < end:
            continue
        if text[at - 1].isupper() and not text[at + 1 : at + 2].islower():
            continue
        start = at - 1
        while start > end and text[start - 1].isalnum() and at - start < _MAX_CAMEL:
            start -= 1
        end = at + 1
        while end < len(text) and text[end].isalnum() and end - start < _MAX_CAMEL:
            end += 1
        parts += [part.lower() for part in _CAMEL_PART.findall(text[start:end])]
    return parts


def stream_tokens(stream: str) -> list[str]:
    """Return the tokens of a document's stream, as the engines split it."""
    if stream.isascii():
        return stream.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
    return _WORD.findall(stream)


def query_tokens(text: str) -> list[str]:
    """Return the tokens of a piece of query text, as the stream of a document would hold them."""
    tokens: list[str] = []
    for word in _WORD.findall(_normalised(text)):
        position = 0
        for run in _CJK_RUN.finditer(word):
            tokens += [word[position : run.start()]] if run.start() > position else []
            piece = run.group()
            tokens += [piece[i : i + 2] for i in range(len(piece) - 1)] or [piece]
            position = run.end()
        tokens += [word[position:]] if position < len(word) else []
    return tokens


def parse_query(text: str) -> Query:
    """Turn any text into a query; quoted parts are phrases, function words count only alone."""
    pieces = [(piece, quoted) for piece, quoted in _pieces(text) if query_tokens(piece)]
    meaningful = [(p, q) for p, q in pieces if q or p.lower().strip("?!.,;:") not in STOP_WORDS] or pieces
    exact: list[Clause] = []
    inflected: list[Clause] = []
    partial: list[Clause] = []
    loose: list[Clause] = []
    words: list[str] = []
    for piece, _ in meaningful:
        tokens = query_tokens(piece)
        words += tokens
        exact.append((_phrase(tokens),))
        whole = [_phrase(tokens)] if len(tokens) > 1 else []
        singles = [_phrase([token]) for token in dict.fromkeys(tokens)]
        camel = [_phrase([part]) for part in _camel_parts(piece) if part not in STOP_WORDS]
        partial.append(tuple(dict.fromkeys(whole + singles + camel)))
        forms = [_forms(token) for token in dict.fromkeys(tokens)]
        inflected += forms
        loose.append(tuple(dict.fromkeys(phrase for clause in forms for phrase in clause)))
    return Query(tuple(exact), tuple(inflected), tuple(partial), tuple(loose), tuple(dict.fromkeys(words)))


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split query text at blanks; text between two double quotes is one piece."""
    pieces: list[tuple[str, bool]] = []
    parts = text.split('"')
    if len(parts) % 2 == 0:  # an unbalanced quote is a sign like any other
        parts[-2:] = [parts[-2] + " " + parts[-1]]
    for position, part in enumerate(parts):
        if position % 2:
            pieces.append((part, True))
        else:
            pieces += [(word, False) for word in part.split()]
    return pieces


def _phrase(tokens: list[str]) -> Phrase:
    lone = len(tokens) == 1 and len(tokens[0]) == 1 and _CJK_RUN.match(tokens[0]) is not None
    return Phrase(tuple(tokens), prefix=lone)


def _forms(token: str) -> Clause:
    """Return the phrases that may stand for a token: itself, without accents, inflected."""
    forms = [_phrase([token])]
    folded = fold_word(token)
    if folded != token:
        forms.append(_phrase([folded]))
    forms += [_phrase([form]) for form in inflections(folded)]
    return tuple(forms)


_VOWELS = frozenset("aeiou")
_NOT_INFLECTED = frozenset(
    ("news", "series", "species", "lens", "always", "across", "perhaps", "basis", "analysis", "during", "something")
)


@lru_cache(maxsize=4_096)
def inflections(word: str) -> tuple[str, ...]:
    """Return other English forms of a lower-case word (-s, -es, -ed, -ing, -ies, doubled letters).

    Light on purpose: forms that are no words cost a look-up and find nothing, while a stemmer
    conflates (university, universe). Words under 3 letters and words with digits have none.
    """
    if len(word) < 3 or not word.isascii() or not word.isalpha() or word in _NOT_INFLECTED:
        return ()
    bases = {word} | _bases(word)
    forms: set[str] = set()
    for base in bases:
        forms |= {base, base + "s", base + "es", base + "ed", base + "ing"}
        if base[-1] == "y":
            forms |= {base[:-1] + "ies", base[:-1] + "ied"}
        elif base[-1] == "e":
            forms |= {base + "d", base[:-1] + "ing"}
        elif _doubles(base):
            forms |= {base + base[-1] + "ed", base + base[-1] + "ing"}
    return tuple(sorted(forms - {word}))


def _bases(word: str) -> set[str]:
    found: set[str] = set()
    if word.endswith(("ies", "ied")):
        found.add(word[:-3] + "y")
    if word.endswith("es"):
        found.add(word[:-2])
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        found.add(word[:-1])
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and _VOWELS & set(stem):
            found |= {stem, stem + "e"}
            if len(stem) > 3 and stem[-1] == stem[-2]:
                found.add(stem[:-1])
    return {base for base in found if len(base) >= 3}


def _doubles(base: str) -> bool:
    return base[-1] not in "aeiouwxy" and base[-2] in _VOWELS and base[-3] not in _VOWELS


STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "so",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)
"""English function words that a question may hold without asking for them."""
