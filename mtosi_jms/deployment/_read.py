"""Reads deployments from TOML; docs/deployment.md has the form."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.compression import read_file
from mtosi_jms.deployment._model import Address, Asking, Deployment, did_you_mean
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import DeliveryMode, Destination, NamingContext

_KEYS: Final = ("name", "names", "suppliers", "requestors", "topics", "profile")


def read_deployment(path: str | os.PathLike[str]) -> Deployment:
    """Read the deployment in a TOML file; `names` may be a file in the same folder. Raises ConfigError: the file cannot
    be read, or is not a deployment."""
    file = Path(path)
    try:
        table = tomllib.loads(read_file(file).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: the deployment cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    if isinstance(table.get("names"), str):
        table["names"] = NamingContext.of(file.parent / table["names"])
    try:
        return deployment_of(table)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def deployment_of(table: Mapping[str, Any]) -> Deployment:
    """Make a deployment from a mapping. Raises ConfigError: a key or value is not valid in a deployment."""
    _only("a deployment", table, _KEYS)
    name = table.get("name")
    if not isinstance(name, str):
        raise ConfigError('a deployment needs the logical name of its OS: name = "jms/OS"')
    return Deployment(
        name=name,
        suppliers={service: _address(service, value) for service, value in _table(table, "suppliers").items()},
        requestors={service: _asking(service, value) for service, value in _table(table, "requestors").items()},
        topics={_category(key): _address(key, value) for key, value in _table(table, "topics").items()},
        profile=_profile(table.get("profile", {})),
        names=NamingContext.of(table.get("names")),
    )


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a table")
    return value


def _only(what: str, table: Mapping[str, Any], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for key in table:
        if key not in allowed:
            hint = did_you_mean(key, allowed) or f"; there are {', '.join(allowed)}"
            raise ConfigError(f"{what} has no {key!r}{hint}")


def _address(what: str, value: object) -> Address:
    if isinstance(value, Destination) or (isinstance(value, str) and value.strip()):
        return value
    raise ConfigError(f"{what} must be the name of a destination")


def _asking(service: str, value: object) -> Asking:
    if isinstance(value, Asking):
        return value
    if not isinstance(value, Mapping):
        return Asking(destination=_address(service, value))
    _only(f"requestors.{service}", value, [entry.name for entry in dataclasses.fields(Asking)])
    if "destination" not in value:
        raise ConfigError(f"requestors.{service}: it needs a destination")
    for key in ("reply_to", "failure_reply_to"):
        if key in value and not (isinstance(value[key], str) and value[key].strip()):
            raise ConfigError(f"requestors.{service}: {key} must be the name of a destination")
    if type(value.get("temporary_reply", False)) is not bool:
        raise ConfigError(f"requestors.{service}: temporary_reply must be true or false")
    _address(service, value["destination"])
    try:
        return Asking(**value)
    except ConfigError as error:
        raise ConfigError(f"requestors.{service}: {error}") from error


def _category(key: object) -> TopicCategory:
    try:
        return TopicCategory(key)
    except ValueError:
        there = ", ".join(category.value for category in TopicCategory)
        raise ConfigError(f"topics: no category {key!r}; there are {there}") from None


def _profile(value: object) -> BindingProfile:
    if isinstance(value, BindingProfile):
        return value
    if isinstance(value, str):
        return BindingProfile.preset(value)
    if not isinstance(value, Mapping):
        raise ConfigError("profile must be a table or the name of a preset")
    _only("profile", value, [entry.name for entry in dataclasses.fields(BindingProfile)])
    switches = dict(value)
    mode = switches.get("delivery_mode")
    if isinstance(mode, str) and mode in DeliveryMode.__members__:
        switches["delivery_mode"] = DeliveryMode[mode]
    return BindingProfile(**switches)
