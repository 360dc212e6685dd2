"""Receives from the embedded provider, lands, acknowledges and logs, for ever: what the kill test kills.

Usage: landing_process.py FOLDER LOG. Prints a line that begins with `ready` when it is under way.
"""

from __future__ import annotations

import itertools
import sys
import time

from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage, Long
from mtosi_jms.spool import AckLog, Acknowledgement, Spool
from mtosi_jms.transport import connect

QUEUE = Queue("landing")


def main(folder: str, log_file: str) -> None:
    spool, log = Spool(folder), AckLog(log_file)
    connection = connect("memory:")
    connection.start()
    session = connection.session()
    consumer = session.consumer(QUEUE)
    for number in itertools.count():
        body = f"<batch>{number}</batch>".encode() * (1 + number % 4000)
        session.send(QUEUE, JmsMessage(body=body, properties={"number": number, "long": Long(number)}))
        delivery = consumer.receive(0)
        assert delivery is not None
        entry = spool.write(delivery.message, time.time_ns() // 1_000_000)
        delivery.acknowledge()
        assert entry.sha256 is not None
        log.append(Acknowledgement(entry.name, delivery.message.message_id, number, entry.sha256))
        if number == 0:
            print("ready", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
