"""Replies of BulkResponse in a landing: they name files, which are read only where an option allows it (C18).

Whoever writes into a landing names the file. So nothing is followed unless `bulkFiles` says below which folders, and
what is not followed is listed, never passed over in silence. A file that was followed does not lead to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtosi_jms.bulk import bulk_files
from mtosi_jms.errors import ArchiveError, FileLocationError, SpoolError
from mtosi_jms.spark._discover import Reject, documents_of

NOT_ALLOWED = "names a file that is not read: the option bulkFiles does not allow any"
NOT_FURTHER = "names a file that is not read: it was in such a file itself"


def follow(
    replies: Iterable[tuple[str, str]], folders: Sequence[str], rejects: list[Reject]
) -> tuple[dict[str, int], list[Reject]]:
    """The documents in the files that replies name.

    Args:
        replies: path of each reply, and its fileLocationURI.
        folders: below which files may be read.
        rejects: takes replies whose file cannot be read, and files that cannot.

    Returns:
        Paths of documents with their sizes in bytes, and the replies that are not followed since no folder is allowed.
    """
    documents: dict[str, int] = {}
    unfollowed: list[Reject] = []
    for path, uri in replies:
        if not folders:
            unfollowed.append(Reject(path, None, NOT_ALLOWED))
            continue
        try:
            files = bulk_files(uri, folders)
        except (FileLocationError, OSError) as error:
            rejects.append(Reject(path, None, str(error)))
            continue
        for file in map(str, files):
            try:
                documents.update(documents_of(file))
            except ArchiveError as error:
                rejects.append(Reject(file, None, error.reason))
            except SpoolError as error:
                rejects.append(Reject(file, None, f"cannot be read: {error.reason}"))
    return documents, unfollowed
