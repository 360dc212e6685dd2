"""The SDK inside other libraries: each module needs the extra of its name, and nothing here is imported unasked.

`mtosi_jms.integrations.zeep`: zeep's client, without generated stubs, over JMS.
"""

from __future__ import annotations

__all__ = ()
