"""Writes the bill of materials of an image as SPDX 2.3 in JSON, from the metadata of its Python and Debian packages.

The script runs inside the image and needs only Python: `make sbom`, or

    docker run --rm --interactive --entrypoint python IMAGE - < mk/image/sbom.py > careen.spdx.json

If SOURCE_DATE_EPOCH is set, the document has this time as its time of creation, so the same image always gives the same
document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

_UNKNOWN = "NOASSERTION"
# In older metadata the licence is a free text. The script uses this text only if it is one of these names of SPDX.
_NAMES = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0"}


def document(python: list[dict[str, Any]], debian: list[dict[str, Any]], created: datetime) -> dict[str, Any]:
    """The whole document. Raises an error if the package `careen` is not installed."""
    (version,) = (each["versionInfo"] for each in python if each["name"] == "careen")
    image = _package("Image", "careen-image", version, f"pkg:oci/careen@{quote(version)}", "Apache-2.0")
    inside = sorted(python + debian, key=lambda each: str(each["SPDXID"]))
    content = hashlib.sha256(json.dumps(inside, sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"careen-{version}",
        # The namespace that SPDX 2.3, clause 6.5, names for creators without a website.
        "documentNamespace": f"https://spdx.org/spdxdocs/careen-{version}-{content}",
        "creationInfo": {
            "created": created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: careen-sbom-{version}"],
        },
        "packages": [image, *inside],
        "relationships": [
            _related("SPDXRef-DOCUMENT", "DESCRIBES", image["SPDXID"]),
            *(_related(image["SPDXID"], "CONTAINS", each["SPDXID"]) for each in inside),
        ],
    }


def python_packages() -> Iterator[dict[str, Any]]:
    """The interpreter, and the packages that `pip list` would show."""
    running = ".".join(map(str, sys.version_info[:3]))
    yield _package("Python", "cpython", running, f"pkg:generic/cpython@{running}", "PSF-2.0")
    for each in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()
        free = each.metadata.get("License", "")
        licence = each.metadata.get("License-Expression") or (free if free in _NAMES else _UNKNOWN)
        yield _package("Python", name, each.version, f"pkg:pypi/{name}@{quote(each.version)}", licence)


def debian_packages(status: str) -> Iterator[dict[str, Any]]:
    """The installed packages in the text of /var/lib/dpkg/status; removed ones are left out."""
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if not fields.get("Status", "").endswith(" installed"):
            continue
        name, version, machine = fields["Package"], fields["Version"], fields["Architecture"]
        purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={machine}"
        yield _package(f"Debian-{machine}", name, version, purl, _UNKNOWN)


def _package(kind: str, name: str, version: str, purl: str, licence: str) -> dict[str, Any]:
    return {
        "SPDXID": f"SPDXRef-{kind}-{re.sub(r'[^a-zA-Z0-9.-]', '-', name)}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": licence,
        "copyrightText": _UNKNOWN,
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl},
        ],
    }


def _related(one: str, how: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def main() -> int:
    """Prints the bill of materials of the image in which the script runs."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    created = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    status = Path("/var/lib/dpkg/status")
    debian = list(debian_packages(status.read_text())) if status.exists() else []
    json.dump(document(list(python_packages()), debian, created), sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
