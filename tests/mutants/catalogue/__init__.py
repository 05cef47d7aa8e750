"""The catalogue of mutants. Each mutant is one mistake, named by its effect."""

from __future__ import annotations

from tests.mutants.catalogue import after_the_cordon, before_the_cordon, cluster, drain, gates, lock, records, shell
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
)
