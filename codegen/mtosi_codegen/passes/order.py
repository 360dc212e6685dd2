"""The order of definitions in a module: enumerations, then classes in the order of the schema, each after its base."""

from __future__ import annotations

from mtosi_codegen.model import ClassDef, Model, TypeModule


def cycles(model: Model) -> None:
    """Give all modules of a cycle the same private home, and their classes names that do not clash there."""
    imports = {module.path: set[str]() for module in model.modules}
    by_path = {module.path: module for module in model.modules}
    for module in model.modules:
        for cls in module.classes:
            if cls.base is not None and cls.base.module is not module:
                imports[module.path].add(cls.base.module.path)
        details = {fault.detail.module.path for fault in module.faults}
        imports[module.path] |= details - {module.path}
    for component in components(imports):
        if len(component) > 1:
            home = "_shared." + "_".join(path.replace(".", "_") for path in sorted(component))
            for path in component:
                by_path[path].home = home


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components, each sorted, ordered by their first members."""
    backward: dict[str, set[str]] = {node: set() for node in graph}
    for node, targets in graph.items():
        for target in targets:
            backward[target].add(node)
    left = set(graph)
    found: list[list[str]] = []
    for node in sorted(graph):
        if node in left:
            component = _reached(node, graph, left) & _reached(node, backward, left)
            left -= component
            found.append(sorted(component))
    return found


def _reached(start: str, graph: dict[str, set[str]], allowed: set[str]) -> set[str]:
    met = {start}
    queue = [start]
    while queue:
        fresh = (graph[queue.pop()] & allowed) - met
        met |= fresh
        queue.extend(fresh)
    return met


def private_name(module: TypeModule, name: str) -> str:
    """The name of a class in the home that its module shares with others."""
    return name if module.home == module.path else f"{''.join(part.title() for part in module.path.split('.'))}_{name}"


def order(model: Model) -> None:
    """Sort every module."""
    for module in model.modules:
        module.enums.sort(key=lambda enum: (enum.place, enum.path))
        module.faults.sort(key=lambda fault: fault.name)
        module.classes = bases_first(sorted(module.classes, key=lambda cls: (cls.place, cls.path)))


def bases_first(classes: list[ClassDef]) -> list[ClassDef]:
    """The classes in the given order, but each after its bases."""
    here = set(classes)
    done: dict[ClassDef, None] = {}
    for cls in classes:
        for ancestor in reversed(list(cls.lineage())):
            if ancestor in here:
                done[ancestor] = None
    return list(done)
