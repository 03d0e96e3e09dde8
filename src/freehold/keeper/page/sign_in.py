"""The sign-in form of the recovery page. Works without the gateway and without scripts."""

from freehold.keeper.page.frame import render_notice, render_page


def render_sign_in(message: str = "", hint: str = "") -> str:
    body = (
        '<div class="narrow">'
        + (render_notice(message, hint, bad=True) if message else "")
        + '<section class="card"><h2>Sign in to the keeper</h2>'
        '<p class="note">On the machine that runs Freehold, run <code>freehold open --keeper</code> and enter the code. '
        "The code works once, within ten minutes.</p>"
        '<form method="post" action="/sign-in"><label for="code">One-time code</label>'
        '<input id="code" name="code" class="mono" autocomplete="one-time-code" autocapitalize="characters" '
        'spellcheck="false" required autofocus maxlength="64" placeholder="ABCDE-FGHIJ-KLMNO-PQRST">'
        '<button class="main">Sign in</button></form></section></div>'
    )
    return render_page("Sign in", body)
