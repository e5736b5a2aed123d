"""How the page looks, and how text is shown in it safely.

Anything → HTML that shows it and does nothing else.

What has no shape, or moves what stands beside it, is shown as its code: control characters, marks
of direction (which can make a text read as another one), lone surrogates.

How the page looks: light and dark, narrow and wide, on paper.
"""

from __future__ import annotations

import html
import re

LONGEST_ID = 80  # letters of one that is shown
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """
    >>> safe('<a href="x">\\u202e\\0')
    '&lt;a href=&quot;x&quot;&gt;⟨U+202E⟩⟨U+0000⟩'
    """
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", html.escape(text))


def safe_id(id_: bytes) -> str:
    """An id, cut where it is very long; text of the other direction stays by itself.

    >>> safe_id(b"a&b\\xff")
    '<bdi>a&amp;b\\\\xff</bdi>'
    """
    text = id_.decode("utf-8", "backslashreplace")
    cut = text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"
    return f"<bdi>{safe(cut)}</bdi>"


STYLE = """
:root {
  --ink: #1d2327; --soft: #5c666d; --faint: #8d979e; --line: #dfe3e4; --paper: #fdfdfb;
  --card: #f5f6f3; --accent: #0f6a74; --accent-ground: #d9eef0; --gone: #a33a1f;
  --gone-ground: #fae4dc;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) { :root {
  --ink: #e4e7e6; --soft: #a3adb2; --faint: #78838a; --line: #30373b; --paper: #15191b;
  --card: #1d2225; --accent: #5fc0cb; --accent-ground: #143a40; --gone: #f0977c;
  --gone-ground: #47231a;
} }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans",
  "DejaVu Sans", sans-serif }
main { max-width: 76rem; margin: 0 auto; padding: 3.5rem 1.5rem 2rem }
h1, h2, .figures dd { font-family: Charter, "Bitstream Charter", "Iowan Old Style", Georgia,
  "Noto Serif", "DejaVu Serif", serif; font-weight: 600; text-wrap: balance }
h1 { font-size: clamp(1.8rem, 4.4vw, 3rem); line-height: 1.12; margin: 0 0 1rem; max-width: 22em;
  letter-spacing: -0.012em }
h2 { font-size: 1.35rem; line-height: 1.2; margin: 0 0 .5rem }
h3 { font-size: .95rem; margin: 0 0 .6rem; font-weight: 600 }
h3 b { color: var(--accent); font-size: 1.25rem; font-variant-numeric: tabular-nums }
h3 small { color: var(--soft); font-size: .85rem; font-weight: 400; margin-left: .5rem }
h4 { font-size: .85rem; margin: 0; font-weight: 600; overflow-wrap: anywhere }
p { margin: 0 }
.over { color: var(--accent); font-size: .9rem; font-weight: 600; margin: 0 0 .9rem;
  overflow-wrap: anywhere }
.lead { font-size: 1.15rem; color: var(--soft); max-width: 44em }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 1.5rem;
  margin: 2.5rem 0 0; padding: 1.4rem 0 0; border-top: 3px solid var(--accent) }
.figures div { display: flex; flex-direction: column-reverse; justify-content: flex-end }
.figures dd { margin: 0; font-size: 1.9rem; line-height: 1.1; font-variant-numeric: tabular-nums }
.figures dt { color: var(--soft); font-size: .85rem; line-height: 1.3; margin-top: .3rem }
section { display: grid; grid-template-columns: 15rem minmax(0, 1fr); gap: 1rem 3rem;
  margin-top: 3.2rem; padding-top: 1.4rem; border-top: 1px solid var(--line) }
section > div:first-child { position: sticky; top: 1.4rem; align-self: start }
section > div:first-child > p { color: var(--soft); font-size: .88rem }
.asked { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .45rem 1.5rem;
  margin: 0 }
.asked dt { color: var(--soft) }
.asked dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums }
code { font: .86em ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace;
  background: var(--card); border-radius: 3px; padding: .1em .35em; overflow-wrap: anywhere;
  display: inline-block; max-width: 100% }
.unknown { color: var(--faint); font-style: italic }
.two { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem 2.5rem }
figure { margin: 0 }
figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .5rem }
table { border-collapse: collapse; width: 100%; font-size: .88rem }
th { text-align: left; font-weight: 400; white-space: nowrap }
thead th { color: var(--faint); font-size: .8rem; padding: 0 .8rem .3rem 0 }
.bars { font-variant-numeric: tabular-nums }
.bars tbody th { padding: .1rem .8rem .1rem 0; width: 1%; white-space: normal; min-width: 6rem;
  overflow-wrap: anywhere }
.ids tbody th { width: 18rem }
.bars td { padding: .1rem 0; vertical-align: middle }
.bars .n { text-align: right; padding-right: .8rem; width: 1%; white-space: nowrap }
.bar { display: block; width: 100%; height: .8rem; fill: var(--accent) }
.bar .track { fill: var(--card) }
figure, .cluster li, .sides, .gone tr { break-inside: avoid }
article { padding: 0 0 1.3rem; margin: 0 0 1.3rem;
  border-bottom: 1px solid var(--line) }
article:last-of-type { border-bottom: 0; margin-bottom: 0 }
article p, .gone td[colspan] { font-size: .88rem; line-height: 1.55; overflow-wrap: anywhere;
  unicode-bidi: plaintext }
.sides > div { background: var(--card); border-radius: 4px; padding: .7rem .9rem }
.sides p { margin-top: .35rem }
.cluster ol { list-style: none; margin: 0; padding: 0 }
.cluster li { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: .2rem 1.5rem;
  padding: .45rem 0; border-top: 1px dotted var(--line) }
.cluster li:first-child { border-top: 0 }
.cluster li p { color: var(--soft) }
article .more, .more { color: var(--soft); font-size: .85rem; padding-top: .4rem }
del { color: var(--gone); background: var(--gone-ground); text-decoration: line-through;
  border-radius: 2px; padding: 0 .12em }
ins { color: var(--accent); background: var(--accent-ground); text-decoration: underline;
  text-underline-offset: .18em; border-radius: 2px; padding: 0 .12em }
.gap { color: var(--faint); white-space: nowrap }
.tag { color: var(--soft); border: 1px solid var(--line); border-radius: 3px; font-size: .75rem;
  font-weight: 400; padding: 0 .35em }
.gone { table-layout: fixed; margin-bottom: .5rem }
.bars + h3, .more + h3 { margin-top: 2rem }
.gone thead th:last-child { width: 6rem }
.gone td { padding: .45rem 1rem 0 0; vertical-align: top; overflow-wrap: anywhere }
.gone .n { font-variant-numeric: tabular-nums; white-space: nowrap; padding-right: 0 }
.gone td[colspan] { padding: .1rem 0 .55rem; color: var(--soft);
  border-bottom: 1px solid var(--line) }
.chain { list-style: none; margin: 0 0 1.5rem; padding: 0 0 0 .3rem }
.chain li { border-left: 2px solid var(--accent); padding: 0 0 .1rem 1.1rem; position: relative }
.chain li:first-child { border-color: transparent }
.chain span:first-child { color: var(--soft); font-size: .82rem; font-variant-numeric: tabular-nums;
  display: block; padding: .15rem 0 }
.chain h4::before { content: ""; position: absolute; left: -6px; margin-top: .4em; width: 10px;
  height: 10px; border-radius: 50%; background: var(--accent) }
.chain + h3, .more + h3 { margin-top: 1.5rem }
footer { margin-top: 3.5rem; padding-top: 1.2rem; border-top: 1px solid var(--line);
  color: var(--faint); font-size: .82rem }
@media (max-width: 66rem) { .figures { grid-template-columns: repeat(3, minmax(0, 1fr)) }
  section { grid-template-columns: minmax(0, 1fr) }
  section > div:first-child { position: static }
section > div:first-child > p { max-width: 44em } }
@media (max-width: 42rem) {
  main { padding: 2rem 1rem 1.5rem }
  .two, .cluster li { grid-template-columns: minmax(0, 1fr) }
  .ids tbody th { width: 9rem }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.1rem }
  .asked { grid-template-columns: minmax(0, 1fr); gap: 0 }
  .asked dd { margin-bottom: .6rem }
}
@media print {
  :root { --ink: #000; --soft: #333; --faint: #555; --line: #bbb; --paper: #fff; --card: #fff;
    --accent: #0b4f57; --accent-ground: #fff; --gone: #8a2d15; --gone-ground: #fff }
  html { font-size: 72% }
  .figures { grid-template-columns: repeat(6, 1fr) }
  main { max-width: none; padding: 0 }
  section { grid-template-columns: minmax(0, 1fr); margin-top: 1.6rem }
  section > div:first-child { position: static }
  .sides > div { border: 1px solid var(--line) }
  .bar .track { fill: none }
  h2, h3, h4 { break-after: avoid }
}
"""
