"""Signing in on the keeper's own page, with the gateway down and no script."""

from freehold.keeper.page.frame import draw, draw_said


def draw_sign_in(said: str = "", hint: str = "") -> str:
    body = (
        '<div class="narrow">'
        + (draw_said(said, hint, bad=True) if said else "")
        + '<section class="card"><h2>Sign in to the keeper</h2>'
        '<p class="note">On the machine that runs Freehold, type <code>freehold open --keeper</code> and enter the code it '
        "shows. It works once, for ten minutes.</p>"
        '<form method="post" action="/sign-in"><label for="code">One-time code</label>'
        '<input id="code" name="code" class="mono" autocomplete="one-time-code" autocapitalize="characters" '
        'spellcheck="false" required autofocus maxlength="64" placeholder="ABCDE-FGHIJ-KLMNO-PQRST">'
        '<button class="main">Sign in</button></form>'
        '<p class="note">A browser that is signed in to Freehold itself is let in here without a code.</p></section></div>'
    )
    return draw("Sign in", body)
