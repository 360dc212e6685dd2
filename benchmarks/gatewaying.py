"""`getManagedElement` by HTTP clients through the gateway, compared with the same call over JMS, in turns in one run.

The HTTP clients are a process of their own. They send requests that were made beforehand and do not parse answers, so
they need little time. Over a broker, the supplier, the gateway and the direct callers are processes of their own, too.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import partial
from typing import Any

from brokered import MILLION, running
from gateway_roles import IN_FLIGHT, SLOW_CALLS, SLOW_SECONDS, Direct, Gateway, Supplier, partial_response
from measure import Comparison, Side, compare
from roles import Role

import mtosi_jms as mtosi
from mtosi_jms.broker import free_ports
from mtosi_jms.xmlbind import encode

OURS = "through the gateway"
DIRECT = "over JMS, as the gateway does"
NAMED = "over JMS, replies on a queue of a name"
"""Replies to the gateway arrive on a temporary queue. Suppliers wait until the broker confirms what they send there."""


def memory(*, quick: bool) -> Comparison:
    """Supplier, requestor and gateway in one process, one GIL; the HTTP clients in another."""
    names = {"jms/InventoryOS": "queue:BENCH.OS", "jms/EmsOS": "queue:BENCH.EMS"}
    with ExitStack() as stack:
        connection = stack.enter_context(mtosi.connect("memory:gatewaying", names=names))
        plan = {"port": free_ports(1)[0]}
        stack.callback(Supplier(plan, connection).supplier.stop)
        stack.callback(Gateway(plan, connection).server.stop)
        clients, direct = _role(stack, "http", plan), Direct({"temporary": True}, connection)
        amount = 200 if quick else 2_000
        sides = [
            Side(OURS, "ours", lambda: clients.run(amount)),
            Side("over JMS", "limit", lambda: direct.run(amount)),
        ]
        title = f"getManagedElement over memory:, {IN_FLIGHT} in flight"
        return compare("gateway-memory", title, "round trips", sides, rounds=3 if quick else 7)


def activemq(*, quick: bool) -> Comparison:
    """Each role a process of its own."""
    return _brokered("activemq", quick)


def artemis(*, quick: bool) -> Comparison:
    """Each role a process of its own."""
    return _brokered("artemis", quick)


def _brokered(kind: str, quick: bool) -> Comparison:
    amount = 200 if quick else 2_000
    with ExitStack() as stack:
        broker, dialect = stack.enter_context(running(kind))
        plan = _plan(broker)
        supplier, gateway = _role(stack, "supplier", {**plan, "threads": 4}), _role(stack, "gateway", plan)
        ways = {
            OURS: [_role(stack, "http", plan), gateway, supplier],
            DIRECT: [_role(stack, "direct", {**plan, "temporary": True}), supplier],
            NAMED: [_role(stack, "direct", plan), supplier],
        }
        used: dict[str, list[list[float]]] = {line: [] for line in ways}

        def run(line: str) -> int:
            before = [one.cpu() for one in ways[line]]
            done = ways[line][0].run(amount)
            used[line].append([(one.cpu() - b) / amount * MILLION for one, b in zip(ways[line], before, strict=True)])
            return done

        sides = [Side(line, "ours" if line == OURS else "limit", partial(run, line)) for line in ways]
        title = f"getManagedElement over {dialect.provider}, {IN_FLIGHT} in flight"
        found = compare(f"gateway-{kind}", title, "round trips", sides, rounds=3 if quick else 7)
        for line in ways:
            who = "HTTP clients, gateway, supplier" if line == OURS else "requestor, supplier"
            middle = ", ".join(f"{statistics.median(column):,.0f}" for column in zip(*used[line][1:], strict=True))
            found.notes.append(f"{line}: CPU µs of {who}: {middle}")
        return found


def slow_calls(*, quick: bool) -> Comparison:
    """Fast calls while slow ones are in flight, over Artemis."""
    amount = 200 if quick else 2_000
    with ExitStack() as stack:
        broker, dialect = stack.enter_context(running("artemis"))
        plan = _plan(broker)
        _role(stack, "supplier", {**plan, "threads": SLOW_CALLS + 2, "prefetch": 1})
        _role(stack, "gateway", plan)
        clients, slow = _role(stack, "http", plan), _role(stack, "slow", plan)
        beside = f"beside {SLOW_CALLS} calls that take {SLOW_SECONDS:g} s each"
        sides = [
            Side(beside, "ours", lambda: clients.run(amount), lambda: slow.run(SLOW_CALLS)),
            Side("alone", "limit", lambda: clients.run(amount), lambda: slow.run(0)),
        ]
        title = f"getManagedElement through the gateway over {dialect.provider}, {IN_FLIGHT} in flight"
        return compare("gateway-slow", title, "round trips", sides, rounds=3 if quick else 7)


def gigabyte(*, quick: bool) -> Comparison:
    """A long answer that is fetched through an iterator; the supplier is connected over Artemis."""
    batches = 20 if quick else 1_750
    with ExitStack() as stack:
        broker, dialect = stack.enter_context(running("artemis"))
        plan = {**_plan(broker), "batches": batches}
        _role(stack, "supplier", plan)
        gateway, direct = _role(stack, "gateway", plan), _role(stack, "direct batches", plan)
        client = _role(stack, "fetch", plan)
        size = len(encode(partial_response())) * batches / MILLION
        sides = [
            Side(OURS, "ours", lambda: client.run(1)),
            Side("over JMS", "limit", lambda: direct.run(1)),
        ]
        title = f"an answer of {size:,.0f} MB over {dialect.provider}"
        notes = ["the peaks are those of the gateway's process and of the requestor's"]
        found = compare(
            "gateway-gigabyte", title, "batches", sides, rounds=1, megabytes=size, warm_up=False, notes=notes
        )
        for line, one in zip(found.lines, (gateway, direct), strict=True):
            line.peak_megabytes = one.peak()
        return found


def _plan(broker: Any) -> dict[str, Any]:
    endpoints = broker.endpoints
    login = {"user": endpoints.user, "password": endpoints.password}
    return {"url": endpoints.url("stomp"), **login, "port": free_ports(1)[0]}


def _role(stack: ExitStack, scenario: str, plan: dict[str, Any]) -> Role:
    """Start a role and wait until it is ready; it ends with the stack."""
    one = Role("gateway_roles", scenario, plan, answers=False)
    stack.callback(one.close)
    one.answer()
    return one
