"""Nearness of words in a text: places of whole words, and the factor that follows from them."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from vaultmem.text.proximity import MAX_BOOST, proximity_factor


def holds_word(text: str, word: str) -> bool:
    """The rule as an expression: a Latin word stands alone, any other may stand inside one."""
    literal = re.escape(word)
    rule = rf"(?<![^\W_]){literal}(?![^\W_])" if word.isascii() else literal
    return re.search(rule, text) is not None


@settings(max_examples=1_000)
@given(st.text("ab _-é日", max_size=30), st.text("abé日_", min_size=1, max_size=3))
def test_a_word_counts_only_where_it_stands_alone(text: str, word: str) -> None:
    found = proximity_factor(f"{text} zz", (word, "zz")) > 1.0  # so short a text: what it holds is near
    assert found == holds_word(text, word)


def test_nearer_words_get_more_and_far_ones_nothing() -> None:
    words = ("deploy", "window")
    side_by_side = proximity_factor("the Deploy window", words)
    apart = proximity_factor("deploy" + " x" * 50 + " window", words)
    far = proximity_factor("deploy" + " x" * 400 + " window", words)
    assert side_by_side == 1.0 + MAX_BOOST > apart > far == 1.0
    assert proximity_factor("deploy" + " x" * 400 + " window, deploy", words) == side_by_side
    assert proximity_factor("redeploy window deploys", words) == 1.0
    assert proximity_factor("deploy deploy", ("deploy", "deploy")) == 1.0
