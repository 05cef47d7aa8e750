"""The catalogue of mutants. A mutant is one mistake in the code, and its name says what then goes wrong."""

from __future__ import annotations

from tests.mutants.catalogue import (
    after_the_cordon,
    before_the_cordon,
    cluster,
    drain,
    gates,
    lock,
    machine,
    records,
    shell,
)
from tests.mutants.mutant import Mutant

CATALOGUE: tuple[Mutant, ...] = (
    *lock.MUTANTS,
    *gates.MUTANTS,
    *drain.MUTANTS,
    *before_the_cordon.MUTANTS,
    *after_the_cordon.MUTANTS,
    *records.MUTANTS,
    *shell.MUTANTS,
    *cluster.MUTANTS,
    *machine.MUTANTS,
)
