"""The secret gate: hits and innocents (tokens are put together here, so that no scanner trips)."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaultmem.text.secrets import find_secret, redact


def part(data: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


A = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
SECRETS = {
    "aws_access_key": "AK" + "IA" + "ABCDEFGHIJ234567",
    "aws_secret_access_key": "aws_secret_access_key = " + (A + A)[:40],
    "pem_private_key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "anthropic_api_key": "sk-" + "ant-" + A,
    "openai_api_key": "sk-" + "proj-" + A,
    "github_fine_grained_pat": "github_" + "pat_" + A[:22] + "_" + (A + A)[:59],
    "github_pat": "gh" + "p_" + (A + A)[:36],
    "gitlab_pat": "gl" + "pat-" + A[:20],
    "slack_token": "xox" + "b-123456789012-" + A[:12],
    "slack_webhook": "https://hooks.slack" + ".com/services/T00000000/B00000000/" + A[:24],
    "stripe_key": "sk_" + "live_" + A[:24],
    "google_api_key": "AI" + "za" + (A + A)[:35],
    "sendgrid_key": "S" + "G." + A[:22] + "." + (A + A)[:43],
    "twilio_key": "twilio: S" + "K" + "0123456789abcdef" * 2,
    "npm_token": "npm" + "_" + (A + A)[:36],
    "pypi_token": "pypi" + "-" + (A + A),
    "huggingface_token": "hf" + "_" + A[:30],
    "telegram_bot_token": "123456789" + ":AA" + (A + A)[:33],
    "jwt": part({"alg": "HS256"}) + "." + part({"sub": "1"}) + "." + A,
    "url_password": "postgres://admin:" + "Zq9" + "x!" + "@db.example.invalid/app",
    "bearer_token": "Authorization: Bearer " + A[:24],
    "secret_assignment": "password: " + "hunter2!x",
}
INNOCENT = [
    "Use sk-learn and task-runner.",
    "The password: see the vault of the team.",
    "password = <your password>",
    "secret: ${SECRET}",
    "pwd: /home/me/work",
    "A token bucket limits requests to 200 a second.",
    "The secret of good tea: time.",
    "password: required",
    "api key: in the settings page",
    "https://example.com/a:b@c",
    "commit 3f0c1a52deadbeef0000111122223333",
    "bearer of bad news that nobody wants",
    "token: 550e8400-e29b-41d4-a716-446655440000",
    "eyJust a word.eyJ and another.text",
    "AKIA is a prefix",
    "[[password: policy]]",
    "secret = os.environ['X']",
    "the passwd file has seven fields",
    "Password: **********",
    "gh" + "p_short",
]


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_recognised_by_name(name: str) -> None:
    text = f"some text\nbefore {SECRETS[name]} after\n"
    found = find_secret(text)
    assert found is not None and (found.pattern, found.line) == (name, 2)
    hidden, names = redact(text)
    assert name in names and SECRETS[name][-12:] not in hidden


@pytest.mark.parametrize("text", INNOCENT)
def test_innocents_pass(text: str) -> None:
    assert find_secret(text) is None
    assert redact(text) == (text, ())


def test_invisible_characters_hide_nothing() -> None:
    token = SECRETS["github_pat"]
    assert find_secret(token[:6] + "\u200b" + token[6:]) is not None
    assert find_secret(token[:6] + "\u2060\ufe0f" + token[6:]) is not None


PIECES = st.sampled_from(
    [
        *(
            "password",
            "PassWd",
            "secret",
            "pwd",
            "word",
            "token",
            "Bearer",
            "api key",
            "\"'`*",
            "**",
            " ",
            "  ",
            "\n",
            "\u00a0",
        ),
        *(
            ":",
            "=",
            ": ",
            "Zq9x!kk2",
            A[:18],
            "abcdefghijklmnopqrst",
            "abcdefghijklmnop\u0663",
            ",",
            "::::",
            "========",
            "\u200b",
        ),
    ]
)


@settings(max_examples=1_000)
@given(st.lists(PIECES, max_size=9).map("".join))
def test_what_is_not_looked_for_is_not_there(text: str) -> None:
    """The gate leaves expressions out by signs that are quick to find; redaction asks every one."""
    assert (find_secret(text) is not None) == bool(redact(text)[1])
