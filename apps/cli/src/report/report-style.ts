/** Follows the reader's light or dark setting. */
export const reportStyle = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1c2430; --soft: #5d6878; --line: #dfe3e9;
  --ok: #2f7d5b; --bad: #c8432f; --lost: #b07a12; --bar: #3d6fb4; }
@media (prefers-color-scheme: dark) { :root { --page: #12161c; --card: #1a2029; --text: #e4e8ee; --soft: #97a3b4;
  --line: #2c3542; --ok: #4fb58a; --bad: #ef6f5b; --lost: #dfa63a; --bar: #6a9ce0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1120px; padding: 32px 20px 64px; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 16px; margin: 0 0 12px; }
.lead { margin: 4px 0 24px; color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px; margin-bottom: 16px; }
.tile, section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 12px 16px; }
.tile b { display: block; font-size: 18px; white-space: nowrap; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.tile.bad b { color: var(--bad); }
.tile.ok b { color: var(--ok); }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr)); gap: 16px; }
section { padding: 16px 20px; margin-bottom: 16px; min-width: 0; overflow-x: auto; }
.grid2 section { margin-bottom: 0; }
.grid2 { margin-bottom: 16px; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg text.note { fill: var(--text); font-weight: 600; paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
.mid { text-anchor: middle; } .end { text-anchor: end; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); } .mark { stroke: var(--text); stroke-dasharray: 4 3; }
.bar { fill: var(--bar); }
.area { stroke: none; opacity: .18; } .line { fill: none; stroke-width: 2; }
.area.ok { fill: var(--ok); } .area.bad { fill: var(--bad); }
.line.ok { stroke: var(--ok); } .line.bad { stroke: var(--bad); }
i.ok { background: var(--ok); } i.bad { background: var(--bad); } i.lost { background: var(--lost); }
.legend { margin: 8px 0 0; color: var(--soft); font-size: 13px; }
.legend span { margin-right: 16px; white-space: nowrap; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); font-weight: normal; }
thead th { color: var(--soft); font-size: 13px; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.id { font: 12px ui-monospace, monospace; overflow-wrap: anywhere; }
.wide { width: 55%; }
.stack { display: flex; height: 14px; border-radius: 3px; overflow: hidden; }
.stack i { display: block; height: 100%; }
.none { color: var(--soft); margin: 8px 0 0; }
details { border-bottom: 1px solid var(--line); padding: 8px 0; }
summary { cursor: pointer; }
summary em { font-style: normal; color: var(--bad); font-weight: 600; }
summary span { color: var(--soft); }
pre { margin: 8px 0 4px; padding: 12px; max-height: 360px; overflow: auto; border-radius: 6px; background: var(--page);
  border: 1px solid var(--line); font: 12.5px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
`;
