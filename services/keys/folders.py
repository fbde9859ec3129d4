"""Folders of the host and of volumes that containers write to which are not root: made writable, and no more than that.

What the crawl writes into `./out` must stay the property of whoever owns that folder, in the sense that matters: they can read,
change and delete it without becoming root. The crawl's user is another one, so the folder gets access control lists: one that lets
the crawl's user in, and a default one, which everything made below it inherits, that lets the folder's owner in.
"""

import errno
import os
import stat
import struct
from pathlib import Path
from typing import Final

_ACCESS: Final = "system.posix_acl_access"
_DEFAULT: Final = "system.posix_acl_default"

#: The kernel's form (linux/posix_acl_xattr.h): a version, then tag, permissions and id of each entry, in this order of tags.
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NO_ID: Final = 0xFFFFFFFF
_ALL: Final = 0o7


def share(folder: Path, uid: int) -> bool:
    """Lets this user write there as well. False: the file system knows no lists, and the folder is open to everybody instead."""
    about = folder.stat()
    # A folder that Docker had to make is root's, though the operator is not: then whoever comes by may delete what lies in it.
    others = _ALL if about.st_uid == 0 else about.st_mode & _ALL
    group = about.st_mode >> 3 & _ALL
    try:
        os.setxattr(folder, _ACCESS, entries((uid,), group=group, others=others))
        os.setxattr(folder, _DEFAULT, entries(tuple(sorted({uid, about.st_uid} - {0})), group=group, others=others))
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EINVAL):
            raise
        folder.chmod(stat.S_IMODE(about.st_mode) | 0o777)
        return False
    return True


def entries(users: tuple[int, ...], *, group: int, others: int) -> bytes:
    """A list that lets these users, and a file's owner, do everything, and the rest what is said."""
    assert list(users) == sorted(users)  # the kernel wants them so
    rows = [
        (_USER_OBJ, _ALL, _NO_ID),
        *((_USER, _ALL, user) for user in users),
        (_GROUP_OBJ, group, _NO_ID),
        (_MASK, _ALL, _NO_ID),
        (_OTHER, others, _NO_ID),
    ]
    return _VERSION + b"".join(_ENTRY.pack(*row) for row in rows)


def give(folder: Path, uid: int) -> None:
    """A volume that is new belongs to root; it is the server's from now on."""
    os.chown(folder, uid, uid)
