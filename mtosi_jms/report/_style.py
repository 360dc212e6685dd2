"""The page's style sheet: one accent, quiet greys, light and dark by the reader's system."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  --page: #f7f8fa; --card: #ffffff; --ink: #16191d; --soft: #5b6470; --line: #e2e6eb;
  --accent: #2f6fb2; --good: #1a7f4b; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12151a; --card: #1a1f26; --ink: #e8ebef; --soft: #9aa5b1; --line: #2c343e;
    --accent: #6aa5e0; --good: #57c08a; --bad: #f2857d;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 920px; margin: 0 auto; padding: 32px 20px 48px; }
header h1 { margin: 0; font-size: 26px; font-weight: 650; letter-spacing: -0.01em; }
header p { margin: 4px 0 0; color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px 20px; margin-top: 16px; }
h2 { margin: 0 0 12px; font-size: 15px; font-weight: 600; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 20px 0 0; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.fact dt { color: var(--soft); font-size: 13px; }
.fact dd { margin: 2px 0 0; font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
.good dd, .state.good { color: var(--good); }
.bad dd, .state.bad { color: var(--bad); }
.notes { margin: 16px 0 0; padding-left: 20px; color: var(--soft); }
.chart { display: block; width: 100%; height: auto; }
.chart text { font-size: 13px; fill: var(--ink); dominant-baseline: middle; }
.chart .tick, .chart .count { fill: var(--soft); font-size: 12px; }
.chart .value { fill: var(--soft); font-variant-numeric: tabular-nums; }
.chart .bar { fill: var(--accent); }
.chart .mark { fill: var(--accent); stroke: var(--card); stroke-width: 2; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .row:hover .bar, .chart rect.bar:hover, .chart .mark:hover { opacity: 0.75; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 13px; }
th, td { padding: 7px 12px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
.number { text-align: right; padding-right: 24px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.state { white-space: nowrap; font-weight: 500; }
footer { margin-top: 20px; color: var(--soft); font-size: 13px; }
"""
