/**
 * The style of the dashboard's page, for wide and narrow windows, light and dark.
 *
 * A string, since the page is one document; it contains nothing that comes from elsewhere.
 */
export const STYLE = `
:root { color-scheme: light dark; --back: #f6f7f9; --card: #fff; --line: #dfe3e8; --text: #1b1f24;
  --quiet: #5b6572; --accent: #0b5cad; --bad: #b42318 }
@media (prefers-color-scheme: dark) { :root { --back: #0d1117; --card: #161b22; --line: #2b323b;
  --text: #e6edf3; --quiet: #9aa5b1; --accent: #6cb6ff; --bad: #ff8178 } }
* { box-sizing: border-box }
[hidden] { display: none !important }
body { margin: 0; padding: 1rem clamp(.75rem, 2vw, 2rem) 3rem; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, sans-serif }
h1 { margin: 0; font-size: 1.25rem; overflow-wrap: anywhere }
h2 { margin: 0; font-size: 1rem }
ul { margin: 0; padding: 0; list-style: none }
#facts { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .25rem; color: var(--quiet) }
#problems { color: var(--bad); overflow-wrap: anywhere }
#state { min-height: 1.45em; margin: .25rem 0 .5rem; color: var(--accent); overflow-wrap: anywhere }
#tables { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); grid-auto-flow: dense }
section { min-width: 0; padding: .75rem 0 .5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px }
section > header { display: flex; gap: .5rem; align-items: baseline; padding: 0 .9rem .35rem }
section > header span { color: var(--quiet) }
.scroll { overflow-x: auto }
.scroll:focus-visible, button:focus-visible, summary:focus-visible { outline: 2px solid var(--accent);
  outline-offset: -2px }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line) }
th { border-top: 0; color: var(--quiet); font-size: .75rem; font-weight: 600; letter-spacing: .03em;
  white-space: nowrap }
th:first-child, td:first-child { padding-left: .9rem }
th:last-child, td:last-child { padding-right: .9rem }
.number { text-align: right; white-space: nowrap }
td.text { min-width: 7rem; overflow-wrap: anywhere; unicode-bidi: plaintext }
td:first-child { min-width: 9rem; font-weight: 550 }
td:last-child.text { min-width: 0 }
summary { cursor: pointer }
details ul { padding: .2rem 0 .2rem 1rem; color: var(--quiet); font-weight: 400 }
button { padding: 0 .6rem; border: 1px solid var(--line); border-radius: 6px; background: transparent;
  color: var(--accent); font: inherit; cursor: pointer; white-space: nowrap }
button:hover { border-color: var(--accent) }
section > button { margin: .5rem .9rem .25rem }
#table-steps, #table-listed { order: -1; scroll-margin: 1rem }
#table-steps td:nth-child(6) { width: 50%; min-width: 9rem; padding-top: .65rem }
.bar { height: .6rem; min-width: 3px; max-width: 100%; border-radius: 3px; background: var(--accent) }
.bar.failed { background: var(--bad) }
.bar.waiting, .bar.retrying, .bar.left, .bar.cancelled { background: var(--quiet) }
@media (max-width: 40rem) {
  th, td { padding: .3rem .45rem }
  th:first-child, td:first-child { position: sticky; left: 0; background: var(--card); padding-left: .75rem }
  td.text { min-width: 5rem }
  td.text:first-child { min-width: 8rem; max-width: 45vw }
  #table-dead thead, #table-dead td:nth-child(n + 3):nth-child(-n + 4) { display: none }
  #table-dead tr { display: grid; grid-template-columns: 1fr auto; border-top: 1px solid var(--line) }
  #table-dead td, #table-dead td.text:first-child { max-width: none; border: 0 }
  #table-dead td:last-child { grid-row: 1; grid-column: 2; padding-right: .75rem }
  #table-dead td:nth-child(2), #table-dead td:nth-child(5) { grid-column: 1 / -1; padding: 0 .75rem .3rem }
  #table-dead td:nth-child(2) { grid-row: 2; color: var(--quiet) }
  #table-steps thead, #table-steps td:nth-child(3), #table-steps td:nth-child(5) { display: none }
  #table-steps tr { display: grid; grid-template-columns: 1fr auto auto auto;
    border-top: 1px solid var(--line) }
  #table-steps td { border: 0 }
  #table-steps td.text:first-child { max-width: none }
  #table-steps td:nth-child(6) { grid-row: 2; grid-column: 1 / -1; width: auto;
    padding: 0 .75rem .5rem }
}
@media (min-width: 70rem) {
  #tables { grid-template-columns: repeat(2, minmax(0, 1fr)) }
  #table-functions, #table-routes, #table-slow, #table-dead, #table-hosts,
  #table-steps { grid-column: 1 / -1 }
}
`
