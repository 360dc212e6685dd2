"""Java's jars, from Maven Central into a cache of the user's: those of brokers, and the Java clients of providers."""

from __future__ import annotations

from mtosi_jms.jars._clients import CLIENTS, Client, Fetched, fetch_client, find_client, is_client
from mtosi_jms.jars._maven import cached, fetch

__all__ = ["CLIENTS", "Client", "Fetched", "cached", "fetch", "fetch_client", "find_client", "is_client"]
