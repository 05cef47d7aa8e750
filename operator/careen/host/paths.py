"""A path of the host as this process sees it: under `--host-root`, with the host's own symbolic links followed
inside it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_MOST_LINKS = 40  # what Linux follows before it says ELOOP


def under_root(root: Path, path: str) -> Path:
    """`path` of the host below `root`.

    Every part but the last may be a symbolic link, and is followed as the host would: Debian's `/var/run` is a link to
    `/run`, which taken literally would lead out of the mounted root into our own container. Raises OSError (ELOOP) on a
    circle of links.
    """
    if root == Path("/"):
        return Path(path)
    followed = 0
    here: list[str] = []
    ahead = [part for part in reversed(PurePosixPath(path).parts) if part != "/"]
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = here[:-1]
            continue
        candidate = root.joinpath(*here, part)
        if not ahead or not candidate.is_symlink():
            here.append(part)
            continue
        followed += 1
        if followed > _MOST_LINKS:
            raise OSError(40, "Too many levels of symbolic links", str(root / path.lstrip("/")))
        target = PurePosixPath(candidate.readlink())
        if target.is_absolute():
            here = []
        ahead.extend(part for part in reversed(target.parts) if part != "/")
    return root.joinpath(*here)
