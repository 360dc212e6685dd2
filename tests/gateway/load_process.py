"""A gateway and the supplier behind it, in a process of its own; says what it holds, for each line that it reads."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.gateway import ByRequestor, Endpoint, HttpOptions, HttpServer, Store


def main() -> None:
    services: Any = [simulator.ManagedElementEms(simulator.Network(elements=20, seed=1))]
    with (
        tempfile.TemporaryDirectory() as folder,
        mtosi.connect("memory:gateway-load") as connection,
        mtosi.Supplier(connection, "queue:EMS.OS", services).start(4),
        mtosi.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True) as requestor,
    ):
        options = HttpOptions(iterators=1_000, iterator_timeout=float(sys.argv[1]), read_timeout=10.0)
        endpoint = Endpoint(ByRequestor(requestor, "queue:EMS.OS", Store(100_000, Path(folder))), options)
        with HttpServer(endpoint) as server:
            print(server.url, flush=True)
            for _ in sys.stdin:
                print(
                    json.dumps({"pending": requestor.pending, "files": len(list(Path(folder).iterdir()))}), flush=True
                )


if __name__ == "__main__":
    main()
