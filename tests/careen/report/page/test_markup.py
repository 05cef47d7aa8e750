"""Tests that text from outside cannot become HTML markup, and that only careen's own sentences can mark text as a
command."""

from __future__ import annotations

from careen.report.page.markup import escape, folded, table, with_code


def test_markup_and_control_characters_are_escaped() -> None:
    assert escape('<b a="1">\x1b[31m\u202e&') == "&lt;b a=&quot;1&quot;&gt;\ufffd[31m\ufffd&amp;"


def test_text_in_backticks_is_marked_as_a_command() -> None:
    assert with_code("ask `careen why <n1>`") == "ask <code>careen why &lt;n1&gt;</code>"


def test_columns_of_integers_are_right_aligned() -> None:
    text = table(["Pod", "Moves"], [["<a>", 2]])
    assert '<th class="n">Moves</th>' in text
    assert '<td>&lt;a&gt;</td><td class="n">2</td>' in text


def test_a_folded_section_escapes_its_title_but_not_its_content() -> None:
    assert folded("<n1>", "<p>x</p>") == "<details><summary>&lt;n1&gt;</summary><p>x</p></details>"
