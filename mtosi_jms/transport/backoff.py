"""How long to wait before the next attempt."""

from __future__ import annotations

from dataclasses import dataclass

from tenacity import RetryCallState, Retrying, wait_exponential, wait_random
from tenacity.wait import wait_base

from mtosi_jms.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waiting that doubles from attempt to attempt, with jitter, so that consumers do not come back all at once.

    Attributes:
        initial: seconds after the first failure.
        maximum: seconds at most, without the jitter.
        jitter: up to so many seconds more, at random.

    Raises:
        ConfigError: a number below 0, or a maximum below the initial one.
    """

    initial: float = 0.5
    maximum: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if min(self.initial, self.jitter) < 0 or self.maximum < self.initial:
            raise ConfigError("back-off: initial and jitter are 0 or more, and the maximum is no less than the initial")

    def strategy(self) -> wait_base:
        """The same for tenacity."""
        return wait_exponential(multiplier=self.initial, max=self.maximum) + wait_random(0, self.jitter)

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row, 1 or more."""
        state = RetryCallState(Retrying(), None, (), {})
        state.attempt_number = failures
        return float(self.strategy()(state))
