"""Deployments: which interfaces of an OS are reached at which destinations, as configuration (P21, O9)."""

from __future__ import annotations

from mtosi_jms.deployment.model import Deployment
from mtosi_jms.deployment.parts import Asking, Problem
from mtosi_jms.deployment.read import deployment_of, read_deployment
from mtosi_jms.deployment.requestors import Requestors

__all__ = ["Asking", "Deployment", "Problem", "Requestors", "deployment_of", "read_deployment"]
