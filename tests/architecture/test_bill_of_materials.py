"""Tests that the bill of materials obeys SPDX 2.3, and that the stripped libraries of the image still work."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import sys
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.architecture.source_tree import ROOT
from tests.patience import run


def script(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "mk" / "image" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sbom() -> dict[str, Any]:
    """Create the bill of materials for the packages of this test environment, and return it parsed."""
    done = run(
        [sys.executable, str(ROOT / "mk" / "image" / "sbom.py")], env={**os.environ, "SOURCE_DATE_EPOCH": "1767312000"}
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


# ---- SPDX 2.3: clauses 6 (document), 7 (packages), 11 (relationships) ----


def test_the_bill_of_materials_has_every_required_field(sbom: dict[str, Any]) -> None:
    assert sbom["spdxVersion"] == "SPDX-2.3"
    assert sbom["dataLicense"] == "CC0-1.0"
    assert sbom["SPDXID"] == "SPDXRef-DOCUMENT"
    assert sbom["creationInfo"]["created"] == "2026-01-02T00:00:00Z"
    assert all(re.match(r"(Tool|Person|Organization): \S", each) for each in sbom["creationInfo"]["creators"])
    assert re.fullmatch(r"https://[^#\s]+", sbom["documentNamespace"])
    assert sbom["name"]


def test_each_package_in_the_bill_of_materials_has_every_required_field(sbom: dict[str, Any]) -> None:
    assert len(sbom["packages"]) > 50
    for package in sbom["packages"]:
        assert re.fullmatch(r"SPDXRef-[a-zA-Z0-9.-]+", package["SPDXID"])
        assert package["name"]
        assert package["downloadLocation"] == "NOASSERTION"
        assert package["filesAnalyzed"] is False
        assert re.fullmatch(r"NOASSERTION|[\w.+-]+( (AND|OR|WITH) [\w.+-]+)*", package["licenseDeclared"]), package
        (reference,) = package["externalRefs"]
        assert reference["referenceCategory"] == "PACKAGE-MANAGER"
        assert re.fullmatch(r"pkg:(pypi|deb/debian|oci|generic)/[^@\s]+@[^@\s]+", reference["referenceLocator"])
    ids = [package["SPDXID"] for package in sbom["packages"]]
    assert len(ids) == len(set(ids))


def test_the_bill_of_materials_describes_the_image_and_everything_in_it(sbom: dict[str, Any]) -> None:
    ids = {package["SPDXID"] for package in sbom["packages"]}
    related = {
        (each["spdxElementId"], each["relationshipType"], each["relatedSpdxElement"]) for each in sbom["relationships"]
    }
    assert ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Image-careen-image") in related
    assert {other for _, how, other in related if how == "CONTAINS"} == ids - {"SPDXRef-Image-careen-image"}
    assert {one for one, _, _ in related} == {"SPDXRef-DOCUMENT", "SPDXRef-Image-careen-image"}


def test_the_bill_of_materials_lists_each_python_package_with_its_version(sbom: dict[str, Any]) -> None:
    inside = {(package["name"], package["versionInfo"]) for package in sbom["packages"]}
    installed = {
        (re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(), each.version) for each in metadata.distributions()
    }
    assert installed - inside == set()


def test_the_namespace_of_the_bill_of_materials_depends_only_on_its_content() -> None:
    make = script("sbom")
    careen = make._package("Python", "careen", "0.1.0", "pkg:pypi/careen@0.1.0", "Apache-2.0")
    other = make._package("Python", "x", "1", "pkg:pypi/x@1", "MIT")
    now, later = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)
    assert (
        make.document([careen], [], now)["documentNamespace"] == make.document([careen], [], later)["documentNamespace"]
    )
    assert (
        make.document([careen], [], now)["documentNamespace"]
        != make.document([careen, other], [], now)["documentNamespace"]
    )


def test_the_bill_of_materials_leaves_out_removed_debian_packages() -> None:
    status = (
        "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9+deb12u10\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"
    )
    (package,) = script("sbom").debian_packages(status)
    assert (package["name"], package["versionInfo"]) == ("libc6", "2.36-9+deb12u10")


# ---- strip.py ----


def test_a_stripped_library_still_works(tmp_path: Path) -> None:
    for package in (msgspec, np):
        source = Path(package.__file__).parent
        for folder in (source, source.with_name(f"{source.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, tmp_path / folder.name)
    done = run([sys.executable, "-S", str(ROOT / "mk" / "image" / "strip.py"), str(tmp_path)])
    assert done.returncode == 0, done.stderr
    program = (
        "import numpy, msgspec; assert numpy.__file__.startswith({!r}); "
        "print(int((numpy.ones((9, 9)) @ numpy.ones((9, 9))).sum()), msgspec.json.decode(b'[1]'))"
    )
    said = run([sys.executable, "-S", "-c", program.format(str(tmp_path))], env={"PYTHONPATH": str(tmp_path)})
    assert said.stdout == "729 [1]\n", said.stderr


def test_strip_removes_from_an_elf_library_only_what_follows_its_last_segment() -> None:
    header = bytearray(64 + 56)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 32, 64)  # e_phoff
    struct.pack_into("<Q", header, 40, 999)  # e_shoff
    struct.pack_into("<HHHHH", header, 54, 56, 1, 64, 7, 6)  # e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    struct.pack_into("<Q", header, 64 + 8, 100)  # p_offset
    struct.pack_into("<Q", header, 64 + 32, 50)  # p_filesz
    kept = script("strip").stripped(bytes(header) + b"s" * 30 + b"d" * 1000)
    assert len(kept) == 150
    assert kept[120:] == b"s" * 30
    assert struct.unpack_from("<Q", kept, 40) == (0,)
    assert struct.unpack_from("<HH", kept, 60) == (0, 0)


@pytest.mark.parametrize(
    "text", [b"", b"INPUT(libc.so.6)", b"\x7fELF\x01\x01" + bytes(99)], ids=["empty", "linker script", "32 bit"]
)
def test_strip_does_not_change_a_file_that_is_no_64_bit_elf_file(text: bytes) -> None:
    assert script("strip").stripped(text) == text


# ---- bytecode.py ----

MODULE = """\
\"\"\"The module's docstring.\"\"\"
from __future__ import annotations


class Empty(Exception):
    \"\"\"Only a docstring.\"\"\"


def checked(number):
    \"\"\"A docstring
    of two lines.\"\"\"
    assert number > 0, "line 12"
    return "text"
"""


def compiled(folder: Path, *options: str, module: str = "site-packages/sample.py") -> Any:
    """Compile the module in `MODULE` as the image build does, and import it from its bytecode. An import of its source
    would fail.
    """
    source = folder / module
    source.parent.mkdir(parents=True)
    source.write_text(MODULE)
    (folder / "broken.py").write_text("def :")
    (folder / "broken_too.py").write_text("import os\nfrom __future__ import annotations")
    done = run([sys.executable, "-S", str(ROOT / "mk" / "image" / "bytecode.py"), *options, str(folder)])
    assert done.returncode == 0, done.stderr
    source.write_text("raise SystemExit('this is the source')")
    spec = spec_from_file_location("sample", source)
    assert spec is not None
    assert spec.loader is not None
    imported = module_from_spec(spec)
    spec.loader.exec_module(imported)
    return imported


def test_bytecode_in_the_image_has_assertions_and_line_numbers_but_no_docstrings(tmp_path: Path) -> None:
    module = compiled(tmp_path)
    assert (module.__doc__, module.Empty.__doc__, module.checked.__doc__) == (None, None, None)
    assert module.checked(1) == "text"
    with pytest.raises(AssertionError, match="line 12") as raised:
        module.checked(0)
    assert raised.traceback[-1].lineno + 1 == 12


@pytest.mark.parametrize("module", ["careen/cli/why.py", "numpy/ma/core.py"])
def test_commands_and_numpy_keep_their_docstrings_in_the_image(tmp_path: Path, module: str) -> None:
    assert compiled(tmp_path, module=module).__doc__ == "The module's docstring."


def test_a_module_whose_path_matches_the_skip_pattern_gets_no_bytecode(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="this is the source"):
        compiled(tmp_path, "--skip", "/site-packages/")
