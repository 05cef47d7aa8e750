"""`careen cleanup` removes every key that careen writes on a Node."""

from __future__ import annotations

import re

import pytest

from careen.core.cleanup.marks import KUREDS, LABELS, ON_THE_DAEMONSET, RECORDS, TAINTS, WORDS
from careen.core.facts import keys
from tests.architecture.source_tree import modules

KEY = re.compile(r"(careen\.dev|weave\.works)/[a-z-]+")
KNOWN = {*LABELS, *RECORDS, *WORDS, *KUREDS, *TAINTS, *ON_THE_DAEMONSET}


def test_a_cleanup_removes_every_key_of_careens_domains() -> None:
    named = {value for value in vars(keys).values() if isinstance(value, str) and KEY.fullmatch(value)}
    assert named
    assert named == KNOWN


@pytest.mark.parametrize("package", ["careen"])
def test_all_keys_of_annotations_labels_and_taints_are_defined_in_the_same_module(package: str) -> None:
    """No module except `careen.core.facts.keys` contains a key of careen's or kured's domain, such as
    `careen.dev/progress`. `careen cleanup` removes the keys of that module, and would miss a key of another module."""
    found = [
        f"{module.where}: {text}"
        for module in modules(package)
        if module.name != "careen.core.facts.keys"
        for text in module.strings()
        if KEY.fullmatch(text)
    ]
    assert found == []
