"""Which file system a folder is on, as far as Linux tells: whether its locks are kept by one kernel; and whether a file
was mounted by itself.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["is_mounted", "kind_of", "network_of"]

MOUNTS = Path("/proc/self/mountinfo")

NETWORK = frozenset(
    {
        *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afpfs", "afs", "coda", "davfs"),
        *("ceph", "glusterfs", "lustre", "gpfs", "beegfs", "fhgfs", "orangefs", "pvfs2", "panfs", "acfs"),
        *("gfs", "gfs2", "ocfs2", "9p", "virtiofs", "drvfs", "vboxsf", "vmhgfs", "prl_fs", "shfs"),
    }
)
"""File systems that several machines, or a host and its guests, may write to at once."""

LOCAL_FUSE = frozenset(
    f"fuse.{name}" for name in ("bindfs", "encfs", "fuse-overlayfs", "gocryptfs", "mergerfs", "ntfs-3g", "unionfs")
)
"""In user space, on top of a local disk. All others of that kind may be anything: sshfs, s3fs, rclone."""


def network_of(folder: Path) -> str | None:
    """The kind of file system of a folder, if several machines may write to it; None if not, or if that is unknown.

    It is known on Linux only.
    """
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        kind = kind_of(os.path.realpath(folder), mounts)
    except OSError:
        return None
    user_space = kind.startswith("fuse.") and kind not in LOCAL_FUSE
    return kind if kind in NETWORK or user_space else None


def is_mounted(path: Path) -> bool:
    """Whether something is mounted at this very path, as a container's volume of one file is; False if unknown."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    own = os.path.realpath(path)
    return any(_point(line) == own for line in mounts.splitlines())


def kind_of(folder: str, mounts: str) -> str:
    """The kind of file system of a resolved folder, by the lines of /proc/self/mountinfo; empty if none fits.

    The mount with the longest path that holds the folder counts; of two at one path, the later, which hides the other.
    """
    found, longest = "", -1
    for line in mounts.splitlines():
        after, point = line.partition(" - ")[2], _point(line)
        if point is None:
            continue
        holds = point == "/" or folder == point or folder.startswith(point + "/")
        if holds and len(point) >= longest:
            found, longest = after.split(" ")[0], len(point)
    return found


def _point(line: str) -> str | None:
    """The path that a line of mountinfo mounts something at; None if it is no such line."""
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    return _unescaped(fields[4]) if len(fields) >= 5 and after else None


def _unescaped(path: str) -> str:
    """A path of mountinfo, in which blanks and the like are three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
