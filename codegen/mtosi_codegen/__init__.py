"""The code generator: it turns WSDL and XML Schema into a typed Python package.

load (reads, repairs, reports) -> wsdl, xsd (model) -> passes -> render (pure) -> write (the only writer)
"""

from __future__ import annotations

from mtosi_codegen.findings import RULES, Finding
from mtosi_codegen.pipeline import Result, generate
from mtosi_codegen.write import Difference, compare, write

__all__ = ["RULES", "Difference", "Finding", "Result", "compare", "generate", "write"]
