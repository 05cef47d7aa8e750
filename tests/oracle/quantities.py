"""Texts that are quantities, look like quantities or are invalid. The oracle (a program with Kubernetes's own code) and
scheduler_core must read them in the same way."""

from __future__ import annotations

import json
import subprocess

from tests.oracle.casegen.draw import Draw
from tests.oracle.casegen.vocabulary import CPU, MEMORY, ODD_CPU, ODD_MEMORY, STORAGE

SUFFIXES = (
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E2",
    "e-3",
    "e+3",
    "E-9",
    "e0",
)
WRONG = (
    "",
    " ",
    ".",
    "-",
    "+",
    "e3",
    "1e",
    "1ee3",
    "1e3k",
    "1Kb",
    "1K",
    "1mi",
    "1 Gi",
    "0x10",
    "1_000",
    "1,5",
    "NaN",
    "Inf",
    "--1",
    "+-1",
    "1.2.3",
    "1e1.5",
    "1E3i",
    "1ki",
    "١",
    "1e99999",
    "1e-99999",
)
EDGES = (
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775807n",
    "9223372036854775.807",
    "8Ei",
    "7.999Ei",
    "16Ei",
    "1E",
    "10E",
    "1e18",
    "1e19",
    "0.0000000001",
    "0.0000000009",
    "1e-10",
    "0e5",
    "00012",
    "0.5Ki",
    "0.1Ki",
    "1.0001Ki",
    "999999999999999999999",
    "0.999999999999",
    "1n",
    "1000n",
    "1001n",
    "999999n",
    "1000001n",
    "12345678901234567890.123456789",
    "4.5e-1",
    ".5Mi",
    "5.Mi",
    "0",
    "0Ki",
    "-0",
    "-1",
    "-100m",
    "-1.5Gi",
    "-0.0000000001",
    "-1500m",
    "-1n",
)


def texts(count: int = 2000) -> list[str]:
    """Returns the fixed texts and `count` generated texts, which are the same in every run."""
    d = Draw("quantities")
    drawn = []
    for _ in range(count):
        whole = "".join(d.choices("0123456789", k=d.choice((0, 1, 1, 2, 3, 5, 9, 12))))
        fraction = d.choice(
            ("", "", "", ".", "." + "".join(d.choices("0123456789", k=d.choice((1, 2, 3, 6, 9, 10, 12)))))
        )
        if whole or fraction.strip("."):  # without any digit the API's own code reads "Ti" as 0 and refuses "Pi"
            drawn.append(d.choice(("", "", "", "", "+", "-")) + whole + fraction + d.choice(SUFFIXES))
    return sorted({*CPU, *ODD_CPU, *MEMORY, *ODD_MEMORY, *STORAGE, *WRONG, *EDGES, *drawn})


def read_by(oracle: str) -> list[list[str | int | None]]:
    """Returns [text, thousandths, units] for each text in `texts()`. The program `oracle`, with Kubernetes's own code,
    reads the text as a quantity: for `1.5` it returns 1500 thousandths and 2 whole units (rounded up). Both numbers are
    None if that code refuses the text."""
    lines = "".join(json.dumps(text) + "\n" for text in texts())
    ran = subprocess.run([oracle, "quantities"], input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]
