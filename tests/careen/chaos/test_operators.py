"""What docs/operators.md claims about each operator: a story with the operator's imitation, on virtual time. `make zoo`
prints what each story cost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drydock.zoo import CITIZENS
from tests.careen.chaos.citizens.stories import STORIES
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


def test_each_citizen_has_a_story() -> None:
    assert {name for story in STORIES for name in story.citizens} == set(CITIZENS)
