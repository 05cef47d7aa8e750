"""The page's style sheet, for phones, screens and paper, light and dark. It loads no font and no image."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1c1f24;--dim:#5b6270;--line:#d5d9e0;--soft:#f3f5f8;--bad:#b42318;--page:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8eaee;--dim:#a3abb8;--line:#3a404b;--soft:#22262d;
--bad:#ff8a7a;--page:#15181d}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:75rem;padding:1rem;font:1rem/1.45 system-ui,sans-serif;color:var(--ink);
background:var(--page)}
h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1.15rem;margin:1.8rem 0 .5rem;border-bottom:1px solid var(--line)}
p{margin:.3rem 0}.dim{color:var(--dim)}ul{padding-left:1.2rem}li{margin:.35rem 0}.risk b{color:var(--bad)}
.legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.5rem 0}
.legend i{display:inline-block;width:1.6rem;height:.8rem;margin-right:.4rem;vertical-align:-1px}
.row{display:grid;grid-template-columns:minmax(6rem,14rem) 1fr;gap:.6rem;align-items:center;padding:.12rem 0;
break-inside:avoid}
.row:nth-child(even){background:var(--soft)}.name{overflow-wrap:anywhere;font-size:.85rem}
.track{position:relative;height:1rem;border-left:1px solid var(--line);border-right:1px solid var(--line)}
.axis .track{height:2.4rem;border:0;overflow:hidden}
.tick{position:absolute;top:0;bottom:0;border-left:1px solid var(--line);padding-left:.25rem;font-size:.72rem;
white-space:nowrap;color:var(--dim)}
.tick.late{border-left:0;border-right:1px solid var(--line);padding:0 .25rem 0 0;transform:translateX(-100%)}
.bar,.legend i{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.bar{position:absolute;top:.1rem;bottom:.1rem;min-width:2px}
.settling{background-image:repeating-linear-gradient(45deg,#0000 0 3px,#fff6 3px 5px)}
.cut{position:absolute;top:0;bottom:0;border-left:2px dotted var(--dim)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem;width:100%}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);
overflow-wrap:break-word}
th,td:first-child,td.n{white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.whole svg{width:100%;height:auto;border:1px solid var(--line)}.whole text{font-size:12px;fill:var(--dim)}
.whole .grid{stroke:var(--line)}.whole .moving{fill:#d97706}.whole .closing{stroke:var(--bad);stroke-dasharray:3 3}
.whole polygon{fill-opacity:.75}
details{margin:.2rem 0}summary{cursor:pointer}
@media (max-width:40rem){body{padding:.6rem}.row{grid-template-columns:1fr;gap:0}.axis .name{display:none}
.tick.minor{display:none}}
@media print{:root{color-scheme:light;--ink:#000;--dim:#444;--line:#bbb;--soft:#f3f5f8;--bad:#900;--page:#fff}
body{max-width:none;padding:0;font-size:9pt}h2{break-after:avoid}}
""".strip()
