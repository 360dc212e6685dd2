"""Selectors made of parts, as in brokers' consoles: whole conditions, and an operator and value for each header."""

from __future__ import annotations

from mtosi_jms.jms.selector._builder import Condition
from mtosi_jms.jms.selector._selector import Selector, parse


def composite(
    *conditions: str | Selector | Condition,
    timestamp: str = "",
    delivery_mode: str = "",
    priority: str = "",
    message_id: str = "",
    correlation_id: str = "",
) -> Selector:
    """Return one selector from several parts, each in parentheses, joined by AND (001-I13, 001-I14).

        composite("MTOSI_objectType = 'ME'", priority="> 4")    # (MTOSI_objectType = 'ME') AND (JMSPriority > 4)

    Each part is parsed as a condition by itself, so it cannot break out of its parentheses. Blank parts are left out. A
    single part gets no parentheses.

    Args:
        conditions: whole conditions.
        timestamp: operator and value for JMSTimestamp, in milliseconds, such as `> 1000`.
        delivery_mode: the same for JMSDeliveryMode, such as `= 'PERSISTENT'`.
        priority: the same for JMSPriority, such as `BETWEEN 5 AND 9`.
        message_id: the same for JMSMessageID; texts have no order.
        correlation_id: the same for JMSCorrelationID.

    Raises:
        SelectorError: a part is not a condition. JMS has no conditions on JMSRedelivered.
    """
    headers = {
        "JMSTimestamp": timestamp,
        "JMSDeliveryMode": delivery_mode,
        "JMSPriority": priority,
        "JMSMessageID": message_id,
        "JMSCorrelationID": correlation_id,
    }
    texts = [_text(one) for one in conditions]
    texts += [f"{name} {rest.strip()}" for name, rest in headers.items() if rest.strip()]
    parts = [parse(text).text.strip() for text in texts if text.strip()]
    return parse(parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts))


def _text(condition: str | Selector | Condition) -> str:
    if isinstance(condition, Condition):
        condition = condition.selector()
    return condition.text if isinstance(condition, Selector) else condition
