"""BulkResponse, the fourth communication pattern: one request, one reply, the data in a file (P2, C18). Experimental.

A requestor names a file with fileLocationURI and says how to compress and pack it. A supplier writes the file, then
answers. This package has the terms of such an exchange, the rules for access to files that a peer names, and the
reading and writing of packed files. It handles only `file:` URIs; the SDK does not transfer files between systems.
"""

from mtosi_jms.bulk._archive import (
    DEFAULT_BOUNDS,
    SEPARATOR,
    Archive,
    BoundedStream,
    Document,
    UnpackBounds,
    damage,
    spool_errors,
)
from mtosi_jms.bulk._exchange import BulkFile, BulkReply, BulkTerms, Compression, Folders, Packing, bulk_files, new_file

__all__ = [
    "DEFAULT_BOUNDS",
    "SEPARATOR",
    "Archive",
    "BoundedStream",
    "BulkFile",
    "BulkReply",
    "BulkTerms",
    "Compression",
    "Document",
    "Folders",
    "Packing",
    "UnpackBounds",
    "bulk_files",
    "damage",
    "new_file",
    "spool_errors",
]
