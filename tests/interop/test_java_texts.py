"""Large and odd texts, both ways: what an XML reader makes of them is the same on either side."""

from __future__ import annotations

import hashlib

import pytest
from lxml import etree

from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.transport import Connection

from .conftest import Side
from .peer import PATIENCE, Peer

pytestmark = pytest.mark.broker
MEGABYTES = 4
ODD = {
    "beyond the basic plane": "<a b='\U0001f600'>\U0001f600 \U00010348</a>",
    "sections and comments": "<a><![CDATA[1 < 2 && \U0001f600 ]]><!-- a -- comment --><?x y?>é</a>".replace(
        "a -- c", "a c"
    ),
    "lines and blanks": "<a>\n\t one\n two \n</a>\n",
    "colons and backslashes": "<a>x:y\\n\\c a\\\\b</a>",
    "long": f"<a>{'größe ' * 6000}</a>",
}


def canonical(text: str | bytes) -> bytes:
    """What an XML reader gets; adjacent CDATA sections and text are one."""
    return etree.tostring(etree.fromstring(text if isinstance(text, bytes) else text.encode()), method="c14n")


@pytest.mark.obligation("O1")
def test_odd_texts(peer: Peer, connection: Connection, queue: Queue) -> None:
    session = connection.session()
    peer.ask("consume", "c", f"queue:{queue.name}", "")
    consumer = session.consumer(Queue(f"{queue.name}.ours"))
    for what, text in ODD.items():
        session.send(queue, JmsMessage(body=text.encode()))
        theirs = peer.receive("c")
        assert theirs is not None
        assert canonical(theirs["body"]) == canonical(text), what
        peer.send(f"queue:{queue.name}.ours", text)
        ours = consumer.receive(PATIENCE)
        assert ours is not None
        assert ours.message.body == text.encode(), what
        ours.acknowledge()
    session.send(queue, JmsMessage(body=b""))
    theirs = peer.receive("c")
    assert theirs is not None
    assert (theirs["kind"], theirs["size"]) == ("TextMessage", "0")
    peer.send(f"queue:{queue.name}.ours", "")
    ours = consumer.receive(PATIENCE)
    assert ours is not None
    assert ours.message.body == b""
    ours.acknowledge()
    peer.ask("close", "c")


def test_a_text_of_some_megabytes(side: Side, peer: Peer, connection: Connection, queue: Queue) -> None:
    session = connection.session()
    data = f"<a>{'é€ and more; ' * (MEGABYTES * 2**20 // 16)}</a>".encode()
    peer.ask("consume", "c", f"queue:{queue.name}", "")
    session.send(queue, JmsMessage(body=data))
    theirs = peer.receive("c")
    assert theirs is not None
    assert (theirs["size"], theirs["sha256"]) == (str(len(data)), hashlib.sha256(data).hexdigest())
    peer.send(f"queue:{queue.name}.ours", data)
    with session.consumer(Queue(f"{queue.name}.ours")) as consumer:
        ours = consumer.receive(PATIENCE)
        assert ours is not None
        assert ours.message.body == data
        ours.acknowledge()
    peer.ask("close", "c")
