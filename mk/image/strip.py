"""Removes debug symbols from shared libraries: `strip.py FOLDER` shortens every `*.so*` in the folder.

To load a library, the system reads only the program headers of its ELF file. Linkers write section headers, and
sections such as `.debug_*` and `.symtab`, behind the last loaded segment, where the file can be cut off. Needs only the
standard library: the slim base image has no binutils. Files that are not 64-bit little-endian ELF stay as they are.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_PROGRAM_HEADERS = struct.Struct("<32xQ")  # e_phoff
_COUNTS = struct.Struct("<54xHH")  # e_phentsize, e_phnum
_SEGMENT = struct.Struct("<8xQ16xQ")  # p_offset, p_filesz
_SECTIONS_AT, _SECTION_COUNTS_AT = 40, 60  # e_shoff; e_shnum and e_shstrndx


def stripped(library: bytes) -> bytes:
    if not library.startswith(_MAGIC):
        return library
    (first,) = _PROGRAM_HEADERS.unpack_from(library)
    size, count = _COUNTS.unpack_from(library)
    ends = [sum(_SEGMENT.unpack_from(library, first + number * size)) for number in range(count)]
    kept = bytearray(library[: max([first + size * count, *ends])])
    struct.pack_into("<Q", kept, _SECTIONS_AT, 0)
    struct.pack_into("<HH", kept, _SECTION_COUNTS_AT, 0, 0)
    return bytes(kept)


def main(folder: Path) -> int:
    """Strips the shared libraries in the folder and its subfolders, and prints how many megabytes that saved."""
    gone = 0
    for path in sorted(folder.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            before = path.read_bytes()
            after = stripped(before)
            path.write_bytes(after)
            gone += len(before) - len(after)
    print(f"removed {gone / 1e6:.1f} MB from the libraries below {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
