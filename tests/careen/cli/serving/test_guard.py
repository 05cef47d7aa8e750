from __future__ import annotations

import pytest

from careen.cli.serving.guard import HEADERS, is_loopback, refusal


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.8.9.1", "::1", "[::1]"])
def test_a_loopback_address_is_one(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", "0.0.0.0", "::", "[::]", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example"),
        *("127.1", "2130706433", "0x7f000001", "[::1", "::ffff:10.0.0.1", " localhost", "localhost evil.example"),
    ],
)
def test_any_other_name_or_address_is_no_loopback_address(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8040"},
        {"Host": "127.0.0.1"},
        {"Host": "[::1]:8040"},
        {"Host": "localhost:8040", "Origin": "http://localhost:8040"},
        {"Host": "localhost:8040", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Host": "localhost:8040", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Host": "localhost:8040", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_the_page_itself_and_a_visit_get_an_answer(headers: dict[str, str]) -> None:
    assert refusal(headers) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": ""},
        {"Host": "rebound.example:8040"},
        {"Host": "localhost.rebound.example"},
        {"Host": "10.0.0.5:8040"},
        {"Host": "localhost:8040", "Origin": "https://evil.example"},
        {"Host": "localhost:8040", "Origin": "http://localhost:3000"},
        {"Host": "localhost:8040", "Origin": "null"},
        {"Host": "localhost:8040", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Host": "localhost:8040", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_a_page_of_another_site_gets_none(headers: dict[str, str]) -> None:
    assert refusal(headers) != ""


def test_the_policy_lets_in_nothing_that_is_inline_or_from_elsewhere() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert {word for part in policy.split(";") for word in part.split()[1:]} <= {"'none'", "'self'", "'script'"}
