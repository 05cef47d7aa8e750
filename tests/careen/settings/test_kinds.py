"""Tests the formats of setting values, and refused values."""

from __future__ import annotations

from datetime import UTC, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from careen.core.facts.policy import Budget, BudgetKind
from careen.core.facts.selectors import Selector
from careen.settings import kinds
from careen.settings.go_regexp import GoRegexp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90s", 90),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("100ms", 0.1),
        ("1h0m0s", 3600),
        (".5s", 0.5),
        ("1µs", 1e-6),
        ("2h45m30.5s", 9930.5),
    ],
)
def test_durations_are_read_as_in_go(text: str, seconds: float) -> None:
    assert kinds.duration(text) == pytest.approx(seconds)


NO_DURATIONS = ["", "1", "90", "-1s", "1d", "1h 30m", "h", "1H", "s1", "1m30", "0x1s", "1e3s", "٣s", "-+1s", "--0"]


@pytest.mark.parametrize("text", [*NO_DURATIONS, "-" * 2**16], ids=lambda text: text[:9])
def test_invalid_and_negative_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        kinds.duration(text)


def test_a_duration_of_more_than_290_years_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 290 years"):
        kinds.duration("99999999h")


@pytest.mark.parametrize("text", ["0", "0s", "0h0m"])
def test_a_deadline_of_zero_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than 0"):
        kinds.deadline(text)
    assert kinds.deadline("1s") == 1


@pytest.mark.parametrize("text", ["", "http://p", "https://prometheus.monitoring:9090/prefix"])
def test_a_url_is_an_http_url_or_empty(text: str) -> None:
    assert kinds.url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "prometheus:9090",
        "prometheus",
        "http://",
        "http:///x",
        "ftp://p",
        "http://p:port",
        "http://p:99999",
        "http://p /x",
        "http://:9090",
    ],
)
def test_an_invalid_url_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected an address"):
        kinds.url(text)


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.1", "0.0.0.0", "::", "::1", "[::1]", "[fe80::1%eth0]", "fd00::7", "localhost", "Node-1.example.org"],
)
def test_a_listen_address_is_ipv4_ipv6_or_a_name(text: str) -> None:
    assert kinds.listen_host(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "300.0.0.1",
        "10.0.0.1:8080",
        "[::1]:8080",
        "[::1",
        "::1]",
        "[10.0.0.1]",
        "[localhost]",
        "a b",
        "http://x",
        "1",
        ":8080",
        "x" * 254,
    ],
)
def test_an_invalid_listen_address_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(ValueError, match="expected an IP address such as"):
        kinds.listen_host(text)


@given(st.integers(0, 10**7))
def test_a_printed_duration_can_be_read_again(seconds: int) -> None:
    assert kinds.duration(kinds.format_duration(float(seconds))) == seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("True", True), ("1", True), ("t", True), ("false", False), ("0", False), ("F", False)],
)
def test_booleans_are_read_as_in_go(text: str, value: bool) -> None:
    assert kinds.boolean(text) is value


@pytest.mark.parametrize("text", ["yes", "on", "", "2"])
def test_a_boolean_that_the_language_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="true or false"):
        kinds.boolean(text)


@pytest.mark.parametrize(
    ("text", "day"), [("mo", 0), ("Mon", 0), ("monday", 0), ("su", 6), ("SUNDAY", 6), ("0", 6), ("1", 0), ("6", 5)]
)
def test_weekdays_are_read_as_by_kured(text: str, day: int) -> None:
    assert kinds.weekday(text) == day


@pytest.mark.parametrize("text", ["", "7", "mond", "someday"])
def test_invalid_weekdays_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="weekday"):
        kinds.weekday(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("0:00", time(0)),
        ("22:30", time(22, 30)),
        ("23:59:59", time(23, 59, 59)),
        ("22", time(22)),
        ("10pm", time(22)),
        ("10:30pm", time(22, 30)),
        ("03am", time(3)),
    ],
)
def test_times_of_day_are_read_as_by_kured(text: str, at: time) -> None:
    assert kinds.time_of_day(text) == at


@pytest.mark.parametrize("text", ["", "24:00", "12:60", "noon", "-1:00"])
def test_invalid_times_of_day_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time of day"):
        kinds.time_of_day(text)


def test_time_zones_are_iana_names() -> None:
    assert kinds.time_zone("UTC") is UTC
    assert kinds.time_zone("") is UTC
    assert kinds.time_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    assert kinds.time_zone("Local") is not None
    for bad in ("Mars/Olympus", "../../etc/passwd", "Europe"):
        with pytest.raises(ValueError, match="time zone"):
            kinds.time_zone(bad)


@pytest.mark.parametrize(
    ("text", "label"), [("a=b", ("a", "b")), ("example.com/a=", ("example.com/a", "")), ("a=b-c.d_e", ("a", "b-c.d_e"))]
)
def test_labels_are_validated_as_by_the_api_server(text: str, label: tuple[str, str]) -> None:
    assert kinds.label(text) == label


@pytest.mark.parametrize(
    "text", ["a", "a-", "=b", "a=b=c", "a=b c", "-a=b", "a/b/c=d", "", "A.com/x=1", f"{'a' * 64}=b"]
)
def test_an_invalid_node_label_is_refused(text: str) -> None:
    """kured accepts the label `a`, which has no value, and crashes after the reboot."""
    with pytest.raises(ValueError, match="key=value"):
        kinds.label(text)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("zone=1", Budget(kind=BudgetKind.ZONE, limit=1)),
        ("zone=25%", Budget(kind=BudgetKind.ZONE, limit=2**31 - 1, percent=25)),
        ("topology:example.com/rack=3", Budget(kind=BudgetKind.TOPOLOGY, limit=3, key="example.com/rack")),
        (
            "topology:rack=100%",
            Budget(kind=BudgetKind.TOPOLOGY, limit=2**31 - 1, key="rack", percent=100),
        ),
        ("control-plane=2", Budget(kind=BudgetKind.CONTROL_PLANE, limit=2)),
        ("selector:app=db=1", Budget(kind=BudgetKind.SELECTOR, limit=1, selector=Selector.parse("app=db"))),
        (
            "selector:app in (db, cache),tier!=x=3",
            Budget(kind=BudgetKind.SELECTOR, limit=3, selector=Selector.parse("app in (db, cache),tier!=x")),
        ),
    ],
)
def test_a_budget_consists_of_a_group_and_a_number(text: str, budget: Budget) -> None:
    assert kinds.budget(text) == budget
    assert kinds.budget(kinds.format_budget(budget)) == budget


@pytest.mark.parametrize(
    "text",
    [
        "zone",
        "zone=0",
        "zone=-1",
        "zone=x",
        "rack=1",
        "selector:=1",
        "=1",
        "",
        "selector:app=(=1",
        "zone=0%",
        "zone=101%",
        "zone=%",
        "zone=1%%",
        "zone=1.5%",
        "zone=²",
        "topology:=1",
        "topology:a b=1",
        "topology=1",
    ],
)
def test_invalid_budgets_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        kinds.budget(text)


@pytest.mark.parametrize(
    ("text", "count"), [("512Mi", 512 * 2**20), ("1Gi", 2**30), ("100000000", 10**8), ("100000k", 10**8)]
)
def test_memory_is_read_as_a_kubernetes_quantity(text: str, count: int) -> None:
    assert kinds.memory(text) == count


@pytest.mark.parametrize("text", ["", "512", "1.5Gi", "lots", "-1Mi", "63Mi"])
def test_a_memory_limit_too_small_for_a_simulation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="memory"):
        kinds.memory(text)


def test_lists_are_split_as_by_kured() -> None:
    assert kinds.comma_separated("mo, tu,we") == ["mo", "tu", "we"]
    assert kinds.comma_separated('"a=b,c",d=e') == ["a=b,c", "d=e"]
    assert kinds.comma_separated("") == []
    assert kinds.one_per_line("app=db,tier=x\n\n app=cache \n") == ["app=db,tier=x", "app=cache"]


@pytest.mark.parametrize("text", ["Node %s", "100%% of %s", "nothing"])
def test_a_template_with_at_most_one_placeholder_is_accepted(text: str) -> None:
    assert kinds.template(text) == text


def test_a_template_that_is_too_long_is_refused() -> None:
    """Each of its fields may become a thousand characters, in every message and in the log."""
    assert kinds.template("x" * 4096)
    for parse in (kinds.template, kinds.template_of_figures):
        with pytest.raises(ValueError, match="expected a text of at most 4096 characters"):
            parse("{reason}" * 513)


@pytest.mark.parametrize("text", ["%s and %s", "%d", "50%"])
def test_a_template_with_two_placeholders_or_a_wrong_placeholder_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one %s"):
        kinds.template(text)


@pytest.mark.parametrize("text", ["", " "])
def test_a_blocking_selector_that_would_match_every_pod_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="every pod"):
        kinds.set_selector(text)


def test_invalid_regular_expressions_are_refused() -> None:
    assert kinds.regexp("^Watch") == GoRegexp("^Watch")
    assert kinds.regexp("") is None
    with pytest.raises(ValueError, match="regular expression"):
        kinds.regexp("(")


SLACK = "slack://T00000000/B00000000/SECRETWORDSECRETWORDSECR"


def test_secret_values_are_not_shown() -> None:
    assert (
        kinds.MESSAGE_URLS.shown((kinds.MESSAGE_URLS.parse(SLACK), kinds.MESSAGE_URLS.parse("logger://")))
        == "slack (set),logger (set)"
    )
    assert kinds.SLACK_HOOK.shown(kinds.SLACK_HOOK.parse("https://hooks.slack.com/services/T/B/C")) == "(set)"
    assert kinds.SLACK_HOOK.shown(None) == ""
    assert kinds.URL.shown("https://name:word@prometheus/a?b=c@d") == "https://prometheus/a?b=c@d"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("slack://a/b/c", ["slack://a/b/c"]),
        ("slack://a/b/c,discord://t@1", ["slack://a/b/c", "discord://t@1"]),
        ("slack://a/b/c\n\n discord://t@1 \n", ["slack://a/b/c", "discord://t@1"]),
        ("smtp://h/?from=a@b.c&to=d@e.f,g@h.i", ["smtp://h/?from=a@b.c&to=d@e.f,g@h.i"]),
        ('"slack://a/b/c", "generic+https://h"', ['"slack://a/b/c"', '"generic+https://h"']),
        ("slack://a/b/c,nonsense", ["slack://a/b/c,nonsense"]),
    ],
)
def test_a_comma_or_a_line_break_ends_a_url_only_if_another_url_follows(text: str, parts: list[str]) -> None:
    """Any other comma is a part of the URL."""
    assert kinds.MESSAGE_URLS.split(text) == parts


@pytest.mark.parametrize("text", ["n1", "ip-10-0-0-1.eu-west-1.compute.internal", "1", "", f"{'a' * 63}.{'b' * 63}"])
def test_valid_object_names_are_accepted(text: str) -> None:
    assert kinds.object_name(text) == text


@pytest.mark.parametrize("text", ["A_B", "N1", "a_b", "a..b", "-a", "a-", ".a", "a.", "a b", "a/b", "ä", "a" * 254])
def test_invalid_object_names_are_refused(text: str) -> None:
    for parse in (kinds.object_name, kinds.needed_name, kinds.namespace):
        with pytest.raises(ValueError, match="expected the name of"):
            parse(text)


def test_a_namespace_contains_no_dots_and_is_not_empty() -> None:
    assert (kinds.namespace("kube-system"), kinds.needed_name("kured.x")) == ("kube-system", "kured.x")
    for text in ("", "a.b", "a" * 64):
        with pytest.raises(ValueError, match="namespace"):
            kinds.namespace(text)
    with pytest.raises(ValueError, match="expected a name"):
        kinds.needed_name("")


@pytest.mark.parametrize("text", ["a..b/c", "-a/b", "A.com/b", "a/b/c", "a/", "/a", "a b", "a" * 64, f"{'a' * 254}/b"])
def test_annotation_keys_that_the_server_would_refuse_are_refused(text: str) -> None:
    for parse in (kinds.label_key, kinds.annotation_key):
        with pytest.raises(ValueError, match="expected a key"):
            parse(text)


def test_careens_own_label_may_not_be_a_reboot_label() -> None:
    with pytest.raises(ValueError, match="careen itself"):
        kinds.label("careen.dev/reboot=ready")


@pytest.mark.parametrize("text", ["/bin/systemctl reboot", "sh -c 'exit 1'", ""])
def test_a_command_with_an_unclosed_quote_is_refused(text: str) -> None:
    assert kinds.command_line(text) == text
    with pytest.raises(ValueError, match="balanced quotes"):
        kinds.command_line(f"{text} 'a")


@pytest.mark.parametrize("text", ["configmap:", "configmap:a/b", "configmap:a b"])
def test_a_scheduler_configuration_setting_requires_a_valid_config_map_key(text: str) -> None:
    with pytest.raises(ValueError, match="expected configmap:KEY"):
        kinds.scheduler_config(text)
    assert [kinds.scheduler_config(each) for each in ("configmap:scheduler.yaml", "/etc/x", "")] == [
        "configmap:scheduler.yaml",
        "/etc/x",
        "",
    ]
