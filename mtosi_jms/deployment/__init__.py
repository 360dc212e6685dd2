"""Deployments: which interfaces of an OS are reached at which destinations, as configuration (P21, O9)."""

from __future__ import annotations

from mtosi_jms.deployment._model import Deployment
from mtosi_jms.deployment._parts import Asking, Problem
from mtosi_jms.deployment._read import deployment_of, read_deployment
from mtosi_jms.deployment._requestors import Requestors

__all__ = ["Asking", "Deployment", "Problem", "Requestors", "deployment_of", "read_deployment"]
