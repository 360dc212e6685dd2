"""BulkResponse, the fourth communication pattern: one request, one reply, the data in a file (P2, C18). Experimental.

A requestor names a file with fileLocationURI and says how it is to be compressed and packed; a supplier writes the
file, then answers. Here stand the terms of such an exchange, the rules by which a file that a peer names may be
touched, and the reading and writing of packed files. Only `file:` URIs are handled; whatever else carries files from
one system to the other is no part of the SDK.
"""

from mtosi_jms.bulk._location import Folders, bulk_files, new_file
from mtosi_jms.bulk._reply import BulkReply
from mtosi_jms.bulk._terms import BulkTerms, Compression, Packing
from mtosi_jms.bulk._writer import BulkFile
from mtosi_jms.bulk.archive import Archive, Document
from mtosi_jms.bulk.bounds import DEFAULT_BOUNDS, UnpackBounds

__all__ = [
    "DEFAULT_BOUNDS",
    "Archive",
    "BulkFile",
    "BulkReply",
    "BulkTerms",
    "Compression",
    "Document",
    "Folders",
    "Packing",
    "UnpackBounds",
    "bulk_files",
    "new_file",
]
