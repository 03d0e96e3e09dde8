"""The style sheet of the recovery page. It is part of the page and allowed by its hash; nothing is loaded."""

import base64
import hashlib

STYLE = """
:root{--paper:#faf8f4;--card:#fff;--ink:#23211d;--soft:#6d675d;--line:#e5e0d6;--accent:#1d5c4d;--accent-ink:#fff;
--good:#1f7a4d;--good-bg:#e3f2e9;--warn:#8a5a00;--warn-bg:#fbf0d9;--bad:#a8322a;--bad-bg:#fbe6e3;--radius:14px;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--paper:#171614;--card:#211f1c;--ink:#edeae3;--soft:#a29b8f;--line:#35322d;
--accent:#7cc7b1;--accent-ink:#10201b;--good:#7fd1a4;--good-bg:#1c3327;--warn:#e6bf6d;--warn-bg:#3a2f18;--bad:#f0958c;
--bad-bg:#3f211f}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:880px;margin:0 auto;padding:28px 20px 64px}
header{display:flex;align-items:center;gap:12px;margin-bottom:26px}
header svg{width:34px;height:34px;flex:none;color:var(--accent)}
header h1{font-size:1.15rem;line-height:1.2;margin:0;letter-spacing:-.01em}
header h1 a{color:inherit;text-decoration:none}
header p{margin:0;color:var(--soft);font-size:.85rem}
header form,header nav{margin-left:auto}
h2{font-size:1rem;margin:34px 0 12px;display:flex;align-items:center;gap:10px;flex-wrap:wrap}
p code{white-space:nowrap}
h2 small{font-weight:400;color:var(--soft);font-size:.85rem}
h2 .right{margin-left:auto;display:flex;gap:8px;align-self:center;flex-wrap:wrap}
a{color:var(--accent)}
code,.mono{font-family:var(--mono);font-size:.86em;overflow-wrap:anywhere}
.card{background:var(--card);border:1px solid var(--line);border-radius:var(--radius);overflow:hidden}
.pad{padding:20px}
.state{display:flex;gap:16px;align-items:center;padding:20px;border-radius:var(--radius);background:var(--good-bg)}
.state.bad{background:var(--bad-bg)}
.state b{display:block;font-size:1.1rem;color:var(--good)}
.state.bad b{color:var(--bad)}
.state.warn{background:var(--warn-bg)}
.state.warn b{color:var(--warn)}
.state p{margin:2px 0 0;font-size:.92rem}
.state ul{margin:6px 0 0;padding-left:18px;font-size:.92rem}
.state a{margin-left:auto;white-space:nowrap}
.row{display:flex;gap:14px;align-items:center;padding:14px 18px;border-top:1px solid var(--line)}
.row:first-child{border-top:0}
.row .what{min-width:0;flex:1}
.row .what b{font-weight:600}
.row .what p{margin:1px 0 0;color:var(--soft);font-size:.86rem;overflow-wrap:anywhere}
.row form,.row>a{flex:none}
.tag{font-size:.76rem;font-weight:600;padding:2px 9px;border-radius:99px;background:var(--line);color:var(--soft);
margin-left:8px;white-space:nowrap}
.tag.good{background:var(--good-bg);color:var(--good)}
.tag.warn{background:var(--warn-bg);color:var(--warn)}
.tag.bad{background:var(--bad-bg);color:var(--bad)}
.plus{color:var(--good)}.minus{color:var(--bad)}
button,.button{font:inherit;font-size:.9rem;font-weight:550;min-height:40px;padding:8px 16px;border-radius:10px;cursor:pointer;
border:1px solid var(--line);background:var(--card);color:var(--ink);text-decoration:none;display:inline-flex;align-items:center}
button:hover,.button:hover{border-color:var(--soft)}
button.main,.button.main{background:var(--accent);border-color:var(--accent);color:var(--accent-ink)}
button:focus-visible,.button:focus-visible,input:focus-visible,a:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
input{font:inherit;width:100%;padding:11px 13px;border-radius:10px;border:1px solid var(--line);background:var(--paper);color:var(--ink)}
label{display:block;font-weight:600;margin-bottom:6px}
.narrow{max-width:460px;margin:6vh auto 0}
.narrow .card{padding:26px}
.narrow h2{margin-top:0;font-size:1.25rem}
.narrow button{width:100%;justify-content:center;margin-top:14px}
.note{color:var(--soft);font-size:.88rem}
.said{padding:14px 18px;border-radius:var(--radius);margin-bottom:18px;background:var(--good-bg)}
.said.bad{background:var(--bad-bg)}
.said b{display:block}
.said p{margin:3px 0 0;font-size:.92rem;overflow-wrap:anywhere;white-space:pre-line}
.paths{margin:0;padding:6px 0;list-style:none;max-height:60vh;overflow:auto}
.paths li{display:flex;gap:12px;padding:5px 18px;font-size:.9rem}
.paths .fate{flex:none;width:92px;color:var(--soft)}
.actions{display:flex;gap:12px;margin-top:18px;flex-wrap:wrap}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:6px 18px;margin:0;font-size:.92rem}
.facts dt{color:var(--soft)}.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
progress{display:block;width:100%;height:8px;margin:8px 0;border:0;border-radius:99px;overflow:hidden;background:var(--line);
accent-color:var(--accent)}
progress[value]{appearance:none;-webkit-appearance:none}
progress[value]::-webkit-progress-bar{background:var(--line)}
progress[value]::-webkit-progress-value{background:var(--accent);border-radius:99px}
progress[value]::-moz-progress-bar{background:var(--accent)}
.pad>p{margin:0;overflow-wrap:anywhere}
details summary{cursor:pointer;color:var(--soft);font-size:.86rem;margin-top:3px}
details ul{margin:6px 0 2px;padding:0;list-style:none;font-size:.84rem}
@media(max-width:560px){main{padding:18px 14px 48px}.row{flex-wrap:wrap;gap:10px}.row .what{flex-basis:100%}
.row form,.row>a{width:100%}.row button,.row .button{width:100%;justify-content:center}.state{flex-wrap:wrap}.state a{margin-left:0}
.facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:8px}}
"""

STYLE_HASH = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
