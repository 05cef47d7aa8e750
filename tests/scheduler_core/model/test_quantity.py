from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.model.quantity import (
    LARGEST,
    NANOS_PER_UNIT,
    QuantityError,
    nanos_to_millis,
    nanos_to_units,
    parse_nanos,
)

FACTORS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "millis", "units"),
    [
        ("500m", 500, 1),
        ("1", 1000, 1),
        ("0.1", 100, 1),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
        ("1e3", 1_000_000, 1000),
        ("1E3", 1_000_000, 1000),
        ("1E", LARGEST, 10**18),
        ("100n", 1, 1),
        ("1500u", 2, 1),
        ("+3k", 3_000_000, 3000),
        ("5.", 5000, 5),
        (".5", 500, 1),
        ("12e-1", 1200, 2),
        ("0", 0, 0),
        ("0000.000Ki", 0, 0),
        ("0.0000000001", 1, 1),
        ("1Ki", 1_024_000, 1024),
    ],
)
def test_quantities_are_read_exactly_and_rounded_up(text: str, millis: int, units: int) -> None:
    assert (nanos_to_millis(parse_nanos(text)), nanos_to_units(parse_nanos(text))) == (millis, units)


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", "1KB", "K1", "--1", "1e", "1e+", "0x10", "1.2.3", "NaN", "1,5", "1Mi5", "½", "٣"]
)
def test_parsing_an_invalid_quantity_raises_a_quantity_error(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_nanos(text)


@given(
    whole=st.integers(0, 10**7), fraction=st.text("0123456789", max_size=12), suffix=st.sampled_from(sorted(FACTORS))
)
def test_every_suffix_scales_by_its_factor(whole: int, fraction: str, suffix: str) -> None:
    """Values finer than a nano-unit are rounded away from zero, and values above 2⁶³−1 units are limited. All other
    values are exact."""
    exact = Fraction(f"{whole}.{fraction or '0'}") * FACTORS[suffix]
    assert parse_nanos(f"{whole}.{fraction}{suffix}") == min(
        math.ceil(exact * NANOS_PER_UNIT), LARGEST * NANOS_PER_UNIT
    )


@given(digits=st.integers(1, 10**6), exponent=st.integers(-12, 9), letter=st.sampled_from("eE"))
def test_every_exponent_scales_by_a_power_of_ten(digits: int, exponent: int, letter: str) -> None:
    assert parse_nanos(f"{digits}{letter}{exponent}") == math.ceil(
        Fraction(digits) * Fraction(10) ** exponent * NANOS_PER_UNIT
    )


@given(st.lists(st.integers(0, 10**12), max_size=8))
def test_a_sum_of_quantities_is_rounded_once(nanos: list[int]) -> None:
    assert nanos_to_millis(sum(nanos)) == -(-sum(nanos) // 10**6)


def test_a_quantity_with_a_huge_exponent_is_limited() -> None:
    assert parse_nanos("1e999999999") == LARGEST * NANOS_PER_UNIT
    assert parse_nanos("1e-999999999") == 1
