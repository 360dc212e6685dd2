"""Notifications in the classes of a second generated package, which has an event that the SDK's stubs lack.

Usage: vendor_events_process.py FOLDER, where the package `acme` is. Prints what was published, received and applied.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import ConfigError
from mtosi_jms.notifications import Publisher, Snapshot, Subscriber, apply_notification
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.testing import connect_privately
from mtosi_jms.xmlbind import find_element

PROFILE = BindingProfile(filter_properties=frozenset({"EventType", "objectName", "perceivedSeverity"}))
TOPICS = {"Inventory": "topic:I", "Fault": "topic:F"}


def main(folder: str) -> None:
    sys.path.insert(0, folder)
    importlib.import_module("acme")
    alert_class: Any = find_element("{urn:vendor:tca}thresholdCrossingAlert", "acme")
    name = importlib.import_module("acme.fmw.nam").name
    me = importlib.import_module("acme.nrf.me")
    creation = importlib.import_module("acme.nrb.rscoc").ResourceObjectCreation
    gen = importlib.import_module("acme.fmw.gen")
    full = name("MD=1/ME=2")
    alert = alert_class(object_name=full, perceived_severity="MAJOR", value=7)
    made = creation(object_name=full, object=gen.AnyListType(any_=[me.Me(name=full, location="here")]))
    with connect_privately({}) as connection:
        publisher = Publisher(connection, TOPICS, sender_uri="E", profile=PROFILE)
        subscribers = [Subscriber(connection, topic, package="acme", timeout=0) for topic in TOPICS.values()]
        for event in (alert, made):
            sent = publisher.publish(event)
            print(
                sent.destination,
                sorted(value for key, value in sent.properties.items() if key[6:] in PROFILE.filter_properties),
            )
        snapshot = Snapshot()
        for subscriber in subscribers:
            for event, _, _ in subscriber:
                applied = apply_notification(snapshot, event)
                told = [one.effect.value for one in applied.changes] or [str(applied.refused)]
                print(type(event).__module__.partition(".")[0], type(event).__name__, *told, event in (alert, made))
        print({key: type(value).__module__ for key, value in snapshot.items()})
        try:
            publisher.publish_message(
                importlib.import_module("acme.fmw.notmsg").NotifyMessage(common_event_information=[alert, Heartbeat()]),
                category="Fault",
            )
        except ConfigError as error:
            print(error)


if __name__ == "__main__":
    main(sys.argv[1])
