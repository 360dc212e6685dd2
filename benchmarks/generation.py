"""Generating Python from a tree of WSDLs and XML Schemas: our generator compared with `xsdata generate`.

Each runs as users run it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Comparison, Side, compare

ROOT = Path(__file__).resolve().parent.parent
OURS, PEER = "bench_ours", "bench_peer"
SERVICE = f"{OURS}.mri.managed_element_retrieval"
# xsdata makes one module for each operation.
PEER_SERVICE = "managed_element_retrieval*_get_all_managed_elements.py"
SECONDS = 600
IMPORTS = 5


def generation(*, quick: bool) -> Comparison:
    """Generate a package from release 4.0 if it is available, otherwise from the project's own files."""
    with tempfile.TemporaryDirectory(prefix="bench-generate-") as name:
        folder = Path(name)
        tree, about = _tree(folder, quick=quick)
        count = sum(1 for path in tree.rglob("*") if path.suffix.lower() in {".wsdl", ".xsd"})
        sides = [Side("mtosi-codegen", "ours", lambda: _ours(folder, tree, count))]
        sides[0].run()
        times = 1 if quick else IMPORTS
        notes = [about, _import_note("mtosi-codegen", folder, SERVICE, times)]
        try:
            _peer(folder, tree, count)
            peers = sorted((folder / PEER).glob(PEER_SERVICE))
            module = f"{PEER}.{peers[0].stem}" if peers else PEER
            notes.append(_import_note("xsdata", folder, module, times))
            sides.append(Side("xsdata, clusters", "peer", lambda: _peer(folder, tree, count)))
        except (subprocess.SubprocessError, OSError) as error:
            notes.append(f"xsdata left out: {_reason(error)}")
        return compare(
            "generate",
            "A tree of WSDLs and XML Schemas to a Python package, whole command",
            "source files",
            sides,
            rounds=1 if quick else 3,
            notes=notes,
        )


def _tree(folder: Path, *, quick: bool) -> tuple[Path, str]:
    release = Path(os.environ.get("MTOSI_SHARED") or ROOT.parent / "shared") / "mtosi" / "4.0"
    if release.is_dir() and not quick:
        return release, "sources: the MTOSI release 4.0"
    for part in ("wsdl", "xsd"):
        shutil.copytree(ROOT / part, folder / "sources" / part)
    return folder / "sources", "sources: wsdl/ and xsd/ of the project"


def _ours(folder: Path, tree: Path, count: int) -> int:
    shutil.rmtree(folder / OURS, ignore_errors=True)
    _run(["-m", "mtosi_codegen", "generate", str(tree), "--package", OURS, "--out", str(folder)], folder)
    return count


def _peer(folder: Path, tree: Path, count: int) -> int:
    shutil.rmtree(folder / PEER, ignore_errors=True)
    command = ["-m", "xsdata", "generate", str(tree), "--recursive", "--extensions", "wsdl,xsd"]
    _run([*command, "--package", PEER, "--structure-style", "clusters"], folder)
    return count


def _import_note(name: str, folder: Path, module: str, times: int) -> str:
    """Measure the import of a generated service and of the libraries that it needs in a new interpreter."""
    program = (
        "import sys, time; start = time.perf_counter(); before = len(sys.modules); "
        f"import {module}; print(time.perf_counter() - start, len(sys.modules) - before)"
    )
    try:
        found = [_run(["-c", program], folder).split() for _ in range(times)]
    except subprocess.SubprocessError as error:
        return f"{name}: import of {module}: {_reason(error)}"
    seconds = statistics.median(float(time) for time, _ in found)
    modules = found[0][1]
    return f"{name}: import of {module}: {seconds * 1000:,.0f} ms, {modules} modules (median of {times})"


def _run(arguments: Sequence[str], folder: Path) -> str:
    # xsdata formats with ruff, which it looks for on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    python = os.pathsep.join([str(ROOT), str(ROOT / "codegen"), str(folder)])
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PATH": path, "PYTHONPATH": python},
        check=True, capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    return done.stdout


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return (str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"])[-1]
    return f"{type(error).__name__}: {error}"
