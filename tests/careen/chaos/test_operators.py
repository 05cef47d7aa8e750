"""What docs/operators.md claims about each operator: a story with the operator's imitation, on virtual time. `make zoo`
prints what each story cost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from careen.settings.tree import SETTINGS, flag
from drydock.zoo import CITIZENS
from tests.careen.chaos.citizens.stories import CEPH, STORIES
from tests.careen.chaos.citizens.story import CitizenStory

PAGE = (Path(__file__).parents[3] / "docs" / "operators.md").read_text(encoding="utf-8")


@pytest.mark.timeout(0)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_careen_does_beside_this_operator_what_the_page_says(story: CitizenStory) -> None:
    played = story.play()
    wrong = story.verdict(played)
    assert not wrong, played.world.report(wrong)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_the_page_of_operators_contains_the_claim_of_each_story(story: CitizenStory) -> None:
    assert f"{story.claim} | `{story.name}` |" in PAGE or re.search(
        rf"{re.escape(story.claim)} \| [^|]*`{story.name}`[^|]* \|", PAGE
    )


def test_each_claim_of_the_page_of_operators_names_a_story() -> None:
    rows = re.findall(r"^\| (?!careen \| |---)(.+?) \| ((?:`[\w-]+`(?:, )?)+) \|$", PAGE, re.MULTILINE)
    named = {name for _, names in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert named == {story.name for story in STORIES}
    assert {claim for claim, _ in rows} == {story.claim for story in STORIES}


def test_each_section_of_the_page_has_a_claim_with_a_story_and_says_what_to_set() -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert len(sections) >= 12
    names = {story.name for story in STORIES}
    for title, text in sections.items():
        assert set(re.findall(r"`([\w-]+)`(?=[^|\n]* \|$)", text, re.MULTILINE)) & names, title
        assert title == "Machines" or "\nSet: " in text, title


def test_each_setting_on_the_page_is_one_of_careens() -> None:
    options = {"workloads"}  # of `careen demo`
    assert set(re.findall(r"--([a-z][a-z-]+)", PAGE)) <= {flag(name) for name in SETTINGS} | options


def test_the_documented_query_on_cephs_health_is_the_one_that_the_stories_use() -> None:
    page = (Path(__file__).parents[3] / "docs" / "health.md").read_text(encoding="utf-8")
    assert "ceph_health_status" in page
    assert f'holds: "{CEPH.comparison} {CEPH.bound:g}"' in page
    assert f'late: "{CEPH.late_comparison} {CEPH.late_bound:g}"' in page


def test_each_citizen_has_a_story() -> None:
    assert {name for story in STORIES for name in story.citizens} == set(CITIZENS)
