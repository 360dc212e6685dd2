"""What all publishers of one system have in common: the attributes of Table 4 that they map (R9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import BindingProfile, FrozenMap
from mtosi_jms.jms.binding import DEFAULT_PROFILE
from mtosi_jms.jms.events import EVENT_NAMES
from mtosi_jms.jms.profile import FILTER_ATTRIBUTES

_FORMS = ("time_form", "severity_form", "event_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemProfile:
    """The selection of attributes by which every publisher of a system goes, made once and never changed (R9b).

    Selectors of subscribers rest on it: a publisher that maps other attributes, or writes them in another form, would
    be filtered out without a sign. So one that differs is refused (R9c).

    Attributes:
        binding: the switches of the binding; its `filter_properties` hold for all events.
        attributes: other attributes for some events, by logical name (`AlarmInformation`), without `MTOSI_`.

    Raises:
        ConfigError: an attribute that Table 4 does not have (R20a).
    """

    binding: BindingProfile = DEFAULT_PROFILE
    attributes: Mapping[str, frozenset[str]] = field(default=FrozenMap())

    def __post_init__(self) -> None:
        frozen = {event: frozenset(names) for event, names in self.attributes.items()}
        for event, names in frozen.items():
            if unknown := names - FILTER_ATTRIBUTES:
                raise ConfigError(f"attributes of {event}: Table 4 has no {', '.join(sorted(unknown))} (R20a)")
        object.__setattr__(self, "attributes", FrozenMap(frozen))

    def attributes_of(self, event: str) -> frozenset[str]:
        """The attributes of Table 4 that become properties of an event, by its logical name."""
        return self.attributes.get(event, self.binding.filter_properties)

    def shared(self, events: Iterable[str]) -> frozenset[str]:
        """The attributes that are mapped for all of these events: what a message with all of them may show (C30)."""
        return frozenset.intersection(*map(self.attributes_of, set(events)))

    def admit(self, profile: BindingProfile) -> None:
        """Accept a publisher of the system by its profile.

        Raises:
            ConfigError: it maps other attributes, or in another form (R9c).
        """
        for form in _FORMS:
            if getattr(profile, form) != getattr(self.binding, form):
                raise ConfigError(f"{form} of the publisher is not that of its system (R9c)")
        for event in sorted({*EVENT_NAMES, *self.attributes}):
            mine, wanted = profile.filter_properties, self.attributes_of(event)
            if mine != wanted:
                other = ", ".join(sorted(mine ^ wanted))
                raise ConfigError(f"{event}: the publisher and its system differ in mapping {other} (R9c)")
