"""Documents against schemas: the SOAP envelope, the MTOSI header and the message in it.

    schemas = SchemaSet.load()                    # the project's own; SchemaSet.load("mtosi_2.0") takes a release
    report = Validator(schemas).validate_file("reply.xml")
    for issue in report.issues:
        print(issue.line, issue.path, issue.message)

Everything happens in memory and offline; no document, no schema and no broken release makes it fetch anything.
"""

from __future__ import annotations

from mtosi_jms.validation._explain import Explainer, Explanation
from mtosi_jms.validation._schemafile import SchemaNote, default_folder
from mtosi_jms.validation._schemaset import SchemaSet
from mtosi_jms.validation._validator import BodyValidation, Issue, Report, Validator

__all__ = [
    "BodyValidation",
    "Explainer",
    "Explanation",
    "Issue",
    "Report",
    "SchemaNote",
    "SchemaSet",
    "Validator",
    "default_folder",
]
