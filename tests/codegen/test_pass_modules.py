"""modules: where a namespace goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.passes.modules import split_namespace


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v1", ("nrf", "me")),
        ("http://www.tmforum.org/mtop/nrf/xsd/eq-inv/v1", ("nrf", "eq_inv")),
        ("http://www.tmforum.org/mtop/nra/xsd/ituArc/v1", ("nra", "itu_arc")),
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v1-1", ("nrf", "me_v1_1")),
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v2", ("nrf", "me_v2")),
        ("http://www.tmforum.org/mtop/mri/wsdl/mer/v1-0", ("mri", "mer_v1_0")),
        ("http://www.tmforum.org/mtop/sb/csi/v1/ext", ("org_tmforum", "mtop_sb_csi_v1_ext")),
        ("http://www.acme.com/inv/2", ("com_acme", "inv_2")),
        ("http://acme.com:8080/", ("com_acme", "types")),
        ("urn:acme:inv", ("urn_acme", "inv")),
        ("urn:acme", ("urn_acme", "types")),
        ("tmf854.v1", ("ns_tmf854_v1", "types")),
        ("http://[not-an-address", ("ns_http", "not_an_address")),
        ("", ("local", "types")),
    ],
)
def test_namespace_to_folder_and_module(namespace: str, path: tuple[str, str]) -> None:
    assert split_namespace(namespace) == path


def test_namespaces_that_would_share_a_module_do_not(build: Callable[..., Result], xsd: Any) -> None:
    body = '<x:element name="e" type="x:int"/>'
    result = build(
        {"a.xsd": xsd(body, "http://acme.com/a-b"), "b.xsd": xsd(body, "http://acme.com/a_b"),
         "c.xsd": xsd(body, "http://acme.com/c")}
    )  # fmt: skip
    paths = {module.namespace: module.path for module in result.model.modules}
    assert len(set(paths.values())) == 3
    assert paths["http://acme.com/c"] == "com_acme.c"
    assert all(path.startswith("com_acme.") for path in paths.values())


def test_a_namespace_without_definitions_has_no_module(build: Callable[..., Result], xsd: Any) -> None:
    result = build({"a.xsd": xsd("", "urn:a"), "b.xsd": xsd('<x:element name="e" type="x:int"/>', "urn:b")})
    assert [module.path for module in result.model.modules] == ["urn_b.types"]


def test_a_long_namespace_fits_a_file_name(build: Callable[..., Result], xsd: Any, package: Any) -> None:
    spaces = [f"http://acme.com/{'long/' * 80}{end}" for end in ("a", "b")]
    result = build({f"{space[-1]}.xsd": xsd('<x:element name="e" type="x:int"/>', space) for space in spaces})
    assert package(result)
    paths = {module.path for module in result.model.modules}
    assert len(paths) == 2
    assert max(map(len, paths)) < 250
