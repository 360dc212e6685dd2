"""Events of a generated package with one that the shipped profile lacks: published, received, applied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SCHEMA = """<?xml version="1.0" encoding="UTF-8"?>
<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns="urn:vendor:tca" targetNamespace="urn:vendor:tca"
    xmlns:cei="http://www.tmforum.org/mtop/fmw/xsd/cei/v1" xmlns:ei="http://www.tmforum.org/mtop/fmw/xsd/ei/v1"
    elementFormDefault="qualified">
  <xsd:import namespace="http://www.tmforum.org/mtop/fmw/xsd/cei/v1" schemaLocation="../fmw/cei.xsd"/>
  <xsd:import namespace="http://www.tmforum.org/mtop/fmw/xsd/ei/v1" schemaLocation="../fmw/ei.xsd"/>
  <xsd:complexType name="ThresholdCrossingAlertType">
    <xsd:complexContent>
      <xsd:extension base="ei:EventInformationType">
        <xsd:sequence>
          <xsd:element name="perceivedSeverity" type="xsd:string" minOccurs="0"/>
          <xsd:element name="value" type="xsd:int"/>
        </xsd:sequence>
      </xsd:extension>
    </xsd:complexContent>
  </xsd:complexType>
  <xsd:element name="thresholdCrossingAlert" type="ThresholdCrossingAlertType"
      substitutionGroup="cei:commonEventInformation"/>
</xsd:schema>
"""


def run(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    done = subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_events_that_a_generated_package_adds(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in ("wsdl", "xsd"):
        shutil.copytree(root / folder, source / folder)
    (source / "xsd" / "vendor").mkdir()
    (source / "xsd" / "vendor" / "tca.xsd").write_text(SCHEMA, encoding="utf-8")
    run(root, "-m", "mtosi_codegen", "generate", str(source), "--package", "acme", "--out", str(tmp_path))
    said = run(root, str(Path(__file__).with_name("vendor_events_process.py")), str(tmp_path))
    assert said.splitlines() == [
        "topic:F ['MAJOR', 'MD=1/ME=2', 'ThresholdCrossingAlert']",
        "topic:I ['MD=1/ME=2', 'ObjectCreation']",
        "acme ResourceObjectCreation created True",
        "acme ThresholdCrossingAlert Refusal.UNKNOWN_EVENT True",
        "{'MD=1/ME=2': 'acme.nrf.me'}",
        "the events of a message must be of one generated package, and at least one",
    ]
