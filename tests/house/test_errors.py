"""The error tree: it is whole, and its errors are values that travel between processes."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mtosi_codegen
import mtosi_jms
from mtosi_jms import Queue, errors
from mtosi_jms.errors import MtosiError, MtosiFault
from mtosi_jms.jms import DeliveryMode, JmsMessage, Long
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.stubs.fmw.hdr import Header

# Steer the module that defines them and are caught there, or by the one that asked for it: no caller sees them.
STEERING = {
    "mtosi_codegen.passes.groups._TooLargeError",
    "mtosi_jms.bridge._objects.Raised",
    "mtosi_jms.bridge._objects.Thrown",
    "mtosi_jms.exchange._dispatcher.Abandoned",
    "mtosi_jms.exchange._reply_writer.ProviderError",
    "mtosi_jms.exchange._reply_writer.WithheldError",
    "mtosi_jms.gateway._endpoint._Gone",
    "mtosi_jms.gateway._access.Throttled",
    "mtosi_jms.gateway._bodies.Refused",
    "mtosi_jms.tables._leaves.Odd",
    "mtosi_jms.validation._judge._Enough",
    "mtosi_jms.xmlbind._fast.Odd",
}

MADE_FOR_CODES = "mtosi_jms.soap._faults"
"""Its fault classes are made for the codes of MTOSI 1.x as they are read; they belong to stubs, not to the tree."""
FAULT_OF_ZEEP = "mtosi_jms.integrations._zeep.calls.SoapFault"
"""A fault that is zeep's, too; a class is made for each class of faults. tests/integrations has its tests."""

MESSAGE = JmsMessage(
    body="<a>é</a>".encode(),
    properties={"MTOSI_msgName": "inventory", "serial": Long(7), "ratio": 0.5, "urgent": True},
    destination=Queue("EMS"),
    delivery_mode=DeliveryMode.PERSISTENT,
)
FAULT = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>
<faultcode>s:Server</faultcode><faultstring>no such element</faultstring><detail><v:unheardOf xmlns:v="urn:v"
 a="b&amp;c"><v:x/></v:unheardOf></detail></s:Fault></s:Body></s:Envelope>"""


def read_fault() -> MtosiFault:
    fault = parse(FAULT).fault
    assert fault is not None
    return fault


def noted(error: MtosiError) -> MtosiError:
    error.add_note("while the third batch was read")
    return error


# Class -> makers of errors as the SDK raises them; a class that is not here is made like its base.
MADE: dict[type[MtosiError], list[Callable[[Any], MtosiError]]] = {
    MtosiError: [lambda cls: cls("what is wrong"), lambda cls: cls(), lambda cls: noted(cls("what is wrong"))],
    errors.NamingError: [lambda cls: cls("Invntory", near=["Inventory"]), lambda cls: cls("queue:", "empty")],
    errors.HeaderError: [lambda cls: cls("replyToURI", "missing")],
    errors.MissingExtraError: [lambda cls: cls("pyspark", "spark")],
    errors.XmlError: [
        lambda cls: cls("it ends early"),
        lambda cls: cls("it ends early", source="a.xml", line=3, path="Envelope/Body"),
    ],
    errors.EncodeError: [lambda cls: cls("no boolean"), lambda cls: cls("no boolean", "a").inside("b[3]")],
    errors.MtosiFault: [
        lambda cls: cls(),
        lambda cls: cls("gone", kind="entityNotFound", detail=Header(activity_name="x"), header=Header(), raw=b"<f/>"),
    ],
    errors.ExchangeError: [lambda cls: cls("two ends"), lambda cls: cls("two ends", "c-1")],
    errors.ReplyTimeoutError: [lambda cls: cls("none in 3 s", "c-1", clock="gap")],
    errors.IncompleteBatchError: [
        lambda cls: cls("c-1", [2, 5, 6], end_seen=True, clock="total"),
        lambda cls: cls("c-1", [], end_seen=False, batches={3: parse(FAULT), 4: Envelope(header=Header())}),
    ],
    errors.SelectorError: [lambda cls: cls("a name is wanted", 7)],
    errors.UnknownOutcomeError: [lambda cls: cls("no receipt"), lambda cls: cls("no receipt", [MESSAGE])],
    errors.SendTimeoutError: [lambda cls: cls(2.5)],
    errors.HandlerTimeoutError: [lambda cls: cls(30)],
    errors.SpoolError: [lambda cls: cls("/var/spool/out", "No space left on device")],
    errors.JournalDamageError: [lambda cls: cls("/var/spool/out", 4096)],
    errors.FileLocationError: [lambda cls: cls("no such host", scheme="ftp"), lambda cls: cls("gone", path="/x")],
    errors.MqFormatError: [lambda cls: cls("no folder", 36), lambda cls: cls("no folder", 0)],
    errors.EventError: [lambda cls: cls("no TypeCode"), lambda cls: cls("no TypeCode", "a").inside("b")],
    errors.UnsupportedQoS: [lambda cls: cls("not kept", ["Priority"]), lambda cls: cls("not kept")],
    errors.InvalidExternalEndPoints: [
        lambda cls: cls([("SOURCE", "INVALID_CHANNELID")], ["there is none"]),
        lambda cls: cls([("SINK", "INVALID_JMSDESTINATION")]),
    ],
    errors.ProcessingFailureError: [lambda cls: cls("EXCPT_INTERNAL_ERROR", "no"), lambda cls: cls("17", "")],
    errors.BridgeNotFound: [lambda cls: cls(7)],
    errors.ReferenceRefusedError: [lambda cls: cls("example.org", 7)],
    errors.SchemaError: [lambda cls: cls("two ports", file="a.wsdl", line=9, rule="W3"), lambda cls: cls("empty")],
}


def below(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


@pytest.fixture(scope="module")
def classes() -> list[type[BaseException]]:
    """Every exception class of the two packages, wherever it is defined."""
    for package in (mtosi_jms, mtosi_codegen):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    ours = ("mtosi_jms.", "mtosi_codegen.")
    found = {one for one in below(BaseException) if one.__module__.startswith(ours)}
    return sorted((one for one in found if FAULT_OF_ZEEP not in map(full_name, one.__mro__)), key=str)


def full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def makers(cls: type[MtosiError]) -> list[Callable[[Any], MtosiError]]:
    return next(MADE[base] for base in cls.__mro__ if base in MADE)


def same(error: MtosiError, other: MtosiError) -> bool:
    facts = all(getattr(error, name) == getattr(other, name) for name in vars(error))
    return facts and (type(error), str(error), error.args) == (type(other), str(other), other.args)


def check_travels(error: MtosiError) -> None:
    copies = [copy.copy(error), copy.deepcopy(error)]
    copies += [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    assert all(same(error, other) for other in copies)
    assert all(error == other and hash(error) == hash(other) for other in copies)


def test_the_tree_holds_every_error_that_can_be_raised(classes: list[type[BaseException]]) -> None:
    named = {errors.__name__, MADE_FOR_CODES}
    elsewhere = [one for one in classes if one.__module__ not in named and ".stubs" not in one.__module__]
    assert set(map(full_name, elsewhere)) == STEERING
    assert not any(issubclass(one, MtosiError) for one in elsewhere)
    assert all(issubclass(one, MtosiFault) for one in classes if ".stubs" in one.__module__)


def test_every_error_pickles_and_copies_equal(classes: list[type[BaseException]]) -> None:
    tree = [one for one in classes if issubclass(one, MtosiError)]
    assert len(tree) > 40
    for cls in tree:
        for make in makers(cls):
            check_travels(make(cls))


def test_a_fault_that_was_read_travels_with_what_it_holds() -> None:
    fault = read_fault()
    check_travels(fault)
    fault.reason = "changed by who passes it on"
    check_travels(fault)
    assert pickle.loads(pickle.dumps(fault)) != read_fault()


class QuotaError(errors.ProtocolError):
    """An application's own, with a signature of its own."""

    def __init__(self, customer: str, *, used: int) -> None:
        self.used = used
        super().__init__(f"{customer} has used {used}", correlation_id=customer)


def test_an_error_of_the_application_travels_too() -> None:
    check_travels(QuotaError("c-9", used=3))


@pytest.mark.parametrize(
    "other",
    [errors.SpoolError("b", "full"), errors.SpoolError("a", "gone"), errors.SpoolFullError("a", "full"), OSError("a")],
    ids=str,
)
def test_errors_that_say_something_else_differ(other: Exception) -> None:
    assert errors.SpoolError("a", "full") != other


def test_what_is_wrong_here_is_no_failure_of_the_provider() -> None:
    assert not issubclass(errors.IllegalStateError, (errors.TransportError, OSError))
