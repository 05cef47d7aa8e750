"""How full the nodes are, as arrays for numpy, pandas and plots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler_core.model.requests import RequestRules
from scheduler_core.model.resources import PODS
from scheduler_core.sentences import count_of, html_table
from scheduler_core.snapshot.columns import Columns
from scheduler_core.snapshot.pods.placements import Placements
from scheduler_core.snapshot.pods.tallies import UsageTally
from scheduler_core.values import Value


class Utilisation(Value, eq=False, kw_only=True):
    """`allocatable[line, row]` and `requested[line, row]` are amounts of the resource `resources[line]` on the node
    `nodes[row]`: cpu in millicores, memory in bytes, everything else counted. The last resource is `pods`."""

    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    allocatable: NDArray[np.int64]
    requested: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<Utilisation nodes={len(self.nodes)} resources={', '.join(self.resources)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the share of each resource on each node."""
        rows = [
            (name, *(f"{share:.0%}" for share in column))
            for name, column in zip(self.nodes, self.shares.T, strict=True)
        ]
        return html_table(("node", *self.resources), rows)

    @property
    def shares(self) -> NDArray[np.float64]:
        """`requested` divided by `allocatable`; 0 where a node has none of the resource and no pod requests it,
        infinite where one does."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.requested == 0, 0.0, self.requested / self.allocatable)

    def of(self, resource: str) -> NDArray[np.float64]:
        """The share of this resource on each node. Raises ValueError if no node has it."""
        if resource not in self.resources:
            found = f"{count_of(len(self.resources), 'resource')}: {', '.join(self.resources)}"
            raise ValueError(f"no node has the resource {resource!r}; the nodes have {found}")
        line: NDArray[np.float64] = self.shares[self.resources.index(resource)]
        return line


def utilisation_of(columns: Columns, placements: Placements, rules: RequestRules) -> Utilisation:
    usage = placements.tally(UsageTally(rules), columns).usage
    return Utilisation(
        nodes=columns.names,
        resources=(*columns.resource_names, PODS),
        allocatable=np.vstack([columns.allocatable, columns.allowed_pods]),
        requested=np.vstack([usage.requested, usage.pods]),
    )
