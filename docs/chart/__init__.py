"""The parts of the Helm chart that come from the settings and from the kustomize manifests; `make docs` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable

from docs.chart import objects, schema, settings

PAGES: dict[str, Callable[[], str]] = {
    "manifests/chart/files/objects.yaml": objects.file,
    "manifests/chart/files/settings.yaml": settings.file,
    "manifests/chart/values.yaml": settings.values_file,
    "manifests/chart/values.schema.json": lambda: json.dumps(schema.of_values(), indent=2, ensure_ascii=False) + "\n",
}
"""The generated files: the path, and the function that returns the content."""
