"""A filter for fail2ban. Freehold bans by itself; this is for those who want the whole machine closed to such an address."""

from freehold.home import Home

FILTER = """\
# Written by `freehold deploy fail2ban`. Save it as /etc/fail2ban/filter.d/freehold.conf, and this as
# /etc/fail2ban/jail.d/freehold.conf:
#
# [freehold]
# enabled = true
# port = {port}
# logpath = {log}
# maxretry = 1
#
# A line is written when an address has failed too often and is banned from SSH for a while.
[Definition]
failregex = ^\\{{.*"message": "<HOST> is banned from SSH: too many failed attempts"
datepattern = "time": "%%Y-%%m-%%dT%%H:%%M:%%S\\.%%f%%z
"""


def write_filter(home: Home, ssh_port: int) -> str:
    return FILTER.format(port=ssh_port, log=home.logs / "ssh.jsonl")
