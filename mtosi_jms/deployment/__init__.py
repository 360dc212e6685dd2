"""Deployments: which interfaces of an OS are reached at which destinations, as configuration (P21, O9)."""

from __future__ import annotations

from mtosi_jms.deployment._model import Asking, Deployment, Problem, Requestors
from mtosi_jms.deployment._read import deployment_of, read_deployment

__all__ = ["Asking", "Deployment", "Problem", "Requestors", "deployment_of", "read_deployment"]
