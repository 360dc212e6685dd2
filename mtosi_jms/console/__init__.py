"""The console: a page in the browser that shows exchanges, destinations, notifications and dead letters as they are.

`Traffic` keeps what was seen lately, bounded. `BrokerWatch` and `LandingWatch` see messages without taking any;
an application tells its own with `Traffic.record`. `Console` shows it. `mtosi-jms console` is all of that as a command.

    traffic = Traffic()
    with HttpServer(Console(traffic), port=8085) as server:
        print(server.url)

Needs the extra `console`.
"""

from __future__ import annotations

from mtosi_jms.console._app import Console, DeadLetters, Redrive
from mtosi_jms.console._exchanges import ExchangeView, Segment, State
from mtosi_jms.console._facts import Facts, Kind
from mtosi_jms.console._traffic import Bounds, Overview, Place, Rate, Seen, Traffic, Way
from mtosi_jms.console._watching import BrokerWatch, LandingWatch

__all__ = [
    "Bounds",
    "BrokerWatch",
    "Console",
    "DeadLetters",
    "ExchangeView",
    "Facts",
    "Kind",
    "LandingWatch",
    "Overview",
    "Place",
    "Rate",
    "Redrive",
    "Seen",
    "Segment",
    "State",
    "Traffic",
    "Way",
]
