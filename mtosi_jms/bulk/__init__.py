"""BulkResponse, the fourth communication pattern: one request, one reply, the data in a file (P2, C18). Experimental.

A requestor names a file with fileLocationURI and says how to compress and pack it. A supplier writes the file, then
answers. This package has the terms of such an exchange, the rules for access to files that a peer names, and the
reading and writing of packed files. It handles only `file:` URIs; the SDK does not transfer files between systems.
"""

from mtosi_jms.bulk._archive import DEFAULT_BOUNDS, SEPARATOR, Archive, BoundedStream, Document, UnpackBounds, damage
from mtosi_jms.bulk._location import Folders, bulk_files, new_file
from mtosi_jms.bulk._reply import BulkReply
from mtosi_jms.bulk._terms import BulkTerms, Compression, Packing
from mtosi_jms.bulk._writer import BulkFile

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
]
