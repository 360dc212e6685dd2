"""The console: a page in the browser that shows exchanges, destinations, notifications and dead letters live.

`Traffic` keeps the messages seen lately, within limits. `BrokerWatch` and `LandingWatch` observe messages without
consuming any; an application shows its own messages through a `Tap`. `Console` has the pages. The command is
`mtosi-jms console`.

    traffic = Traffic()
    with mtosi.connect(url, telemetry=Tap(traffic)) as connection, HttpServer(Console(traffic), port=8085) as server:
        print(server.url)

Needs the extra `console`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtosi_jms.registry import names_from

if TYPE_CHECKING:
    from mtosi_jms.console._app import Console
    from mtosi_jms.console._exchanges import Exchange, Segment, State
    from mtosi_jms.console._facts import Facts, Kind
    from mtosi_jms.console._letters import DeadLetters, Letter, LetterBox
    from mtosi_jms.console._traffic import Bounds, Overview, Place, Rate, Seen, Traffic, Way
    from mtosi_jms.console._watching import BrokerWatch, LandingWatch, Tap

__all__ = [
    "Bounds",
    "BrokerWatch",
    "Console",
    "DeadLetters",
    "Exchange",
    "Facts",
    "Kind",
    "LandingWatch",
    "Letter",
    "LetterBox",
    "Overview",
    "Place",
    "Rate",
    "Seen",
    "Segment",
    "State",
    "Tap",
    "Traffic",
    "Way",
]

__getattr__ = names_from(__name__, __all__, "_traffic", "_facts", "_exchanges", "_letters", "_watching", "_app")
