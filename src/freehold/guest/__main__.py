"""`python3 guest.pyz --listen FD`."""

from freehold.guest.guest import main

main()
