"""Tests that equal items get the order that Go gives them. The expected orders were recorded from Go 1.26's sort.Slice,
which has not changed since 1.19."""

import hashlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.preemption.go_order import _Sort, go_sorted


def generator(seed: int) -> Callable[[int], int]:
    """Returns a function that draws numbers from a linear congruential generator, which is easy to repeat in Go."""
    state = seed

    def draw(below: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    return draw


def places(keys: list[int]) -> list[int]:
    """Sorts the keys with `go_sorted`. Returns the positions that the keys had before sorting: first the position of
    the smallest key, last the position of the largest key. For example, the keys 30, 10 and 20 give [1, 2, 0]."""
    return [
        place
        for _, place in go_sorted(list(zip(keys, range(len(keys)), strict=True)), lambda one, other: one[0] < other[0])
    ]


@pytest.mark.parametrize(
    ("length", "kinds", "expected"),
    [
        (13, 3, [6, 3, 8, 12, 2, 4, 5, 0, 11, 1, 7, 9, 10]),
        (20, 2, [6, 1, 2, 3, 4, 5, 13, 19, 17, 14, 0, 11, 12, 10, 9, 15, 16, 8, 18, 7]),
        (
            30,
            4,
            [
                10,
                27,
                25,
                23,
                4,
                5,
                19,
                17,
                13,
                21,
                6,
                11,
                29,
                28,
                14,
                2,
                15,
                26,
                18,
                12,
                8,
                0,
                1,
                3,
                9,
                24,
                7,
                22,
                20,
                16,
            ],
        ),
    ],
)
def test_equal_items_are_sorted_as_by_go(length: int, kinds: int, expected: list[int]) -> None:
    draw = generator(length)
    assert places([draw(kinds) for _ in range(length)]) == expected


def shaped(seed: int) -> list[int]:
    """Generates up to 300 keys, many of which are equal: random, nearly ascending, descending, or in waves."""
    draw = generator(seed)
    length, step, shape = draw(300), draw(40) + 1, draw(4)
    if shape == 0:
        return [draw(step) for _ in range(length)]
    if shape == 1:
        return [draw(length) if draw(20) == 0 else index // step for index in range(length)]
    if shape == 2:
        return [-(index // step) for index in range(length)]
    return [index * index % (step + 2) for index in range(length)]


def test_three_thousand_inputs_are_sorted_as_by_go() -> None:
    digest = hashlib.sha256()
    for seed in range(3000):
        digest.update(b"".join(struct.pack("<I", place) for place in places(shaped(seed))))
    assert digest.hexdigest() == "ede0b11145227b1346284f05c0854e91dd24c8de96594d52266fbc324180b69b"


def test_a_short_list_is_sorted_stably() -> None:
    assert places([1, 0] * 6) == [1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10]


@given(st.lists(st.integers(0, 9), max_size=200))
def test_a_list_is_sorted_and_keeps_all_its_items(keys: list[int]) -> None:
    found = places(keys)
    assert sorted(found) == list(range(len(keys)))
    assert [keys[place] for place in found] == sorted(keys)


@given(st.lists(st.integers(0, 9), min_size=13, max_size=80))
def test_a_list_with_bad_pivots_is_sorted_by_heap_sort(keys: list[int]) -> None:
    run = list(keys)
    _Sort(run, lambda one, other: one < other).sort(0, len(run), 0)
    assert run == sorted(keys)
