"""Java's jars, from a Maven repository into a cache of the user's: brokers, clients of providers, Delta and Iceberg."""

from __future__ import annotations

from mtosi_jms.jars._clients import CLIENTS, Client, Fetched, fetch_client, find_client, is_client
from mtosi_jms.jars._fetch import fetch, fetch_unpinned, pins

__all__ = [
    "CLIENTS",
    "Client",
    "Fetched",
    "fetch",
    "fetch_client",
    "fetch_unpinned",
    "find_client",
    "is_client",
    "pins",
]
