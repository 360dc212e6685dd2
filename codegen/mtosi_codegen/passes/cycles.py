"""No import cycles: modules whose base classes lie in each other share one private module that holds their classes.

At run time a module imports only the modules of its base classes and of the content of its faults; everything else is
named by path and found at first use. So only these can make a cycle.
"""

from __future__ import annotations

from mtosi_codegen.model import Model, TypeModule


def run(model: Model) -> None:
    """Give each module of a cycle the same private home, and names that do not clash there."""
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
    """Strongly connected components, each sorted, in the order of their first member."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in sorted(graph):
        work: list[tuple[str, list[str]]] = [(root, sorted(graph[root]))] if root not in index else []
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            if targets:
                target = targets.pop(0)
                if target not in index:
                    work.append((target, sorted(graph[target])))
                elif target in stack:
                    low[node] = min(low[node], index[target])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == index[node]:
                cut = stack.index(node)
                found.append(sorted(stack[cut:]))
                del stack[cut:]
    return sorted(found)


def private_name(module: TypeModule, name: str) -> str:
    """The name of a class in the home that its module shares with others."""
    return name if module.home == module.path else f"{''.join(part.title() for part in module.path.split('.'))}_{name}"
