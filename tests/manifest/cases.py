"""For every rule a manifest that breaks it and one, as near as can be, that does not."""

import datetime
from dataclasses import dataclass, field
from typing import Any

from tests.manifest.machine import GIB

DID = 'did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"'
OWNER = f"[owner]\n{DID}\n"
KEY = {"MY_KEY": "k-0123456789"}


@dataclass(frozen=True)
class Case:
    """`breaks` must be told under the code, with `says` in its message and at `key`; `keeps` must not."""

    breaks: str
    keeps: str
    says: str
    key: str
    environ: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    keeps_machine: dict[str, Any] | None = None


REMOTE = '[[computer.mounts]]\nkind = "s3"\nsource = "photos"\ntarget = "/mnt/a"\n'
CASES: dict[str, Case] = {
    "E101": Case("[keeper]\nport = 3000", "[keeper]\nport = 3001", "3000", "keeper.port"),
    "E102": Case('[gateway]\nhost = "my-laptop"', '[gateway]\nhost = "localhost"', "my-laptop", "gateway.host"),
    "W103": Case("[gateway]\nport = 443", "[gateway]\nport = 4430", "443", "gateway.port"),
    "E104": Case(
        '[observe]\nmetrics_host = "0.0.0.0"',
        '[observe]\nmetrics_host = "0.0.0.0"\n[security.exceptions.public-metrics]\nreason = "a firewall is in front"',
        "0.0.0.0",
        "observe.metrics_host",
    ),
    "E111": Case('[owner]\ndid = "did:plc:short"', OWNER, "did:plc:short", "owner.did"),
    "E112": Case(f'{OWNER}handle = "@alice"', f'{OWNER}handle = "alice.bsky.social"', "@alice", "owner.handle"),
    "W113": Case(
        '[owner]\nhandle = "alice.bsky.social"', f'{OWNER}handle = "alice.bsky.social"', "alice", "owner.handle"
    ),
    "E114": Case(
        '[gateway]\npublic_url = "https://a.example.com"',
        f'{OWNER}[gateway]\npublic_url = "https://a.example.com"',
        "https://a.example.com",
        "gateway.public_url",
    ),
    "E115": Case(
        '[owner]\nplc_url = "plc.directory"', '[owner]\nplc_url = "https://plc.test"', "plc.directory", "owner.plc_url"
    ),
    "E116": Case(
        f'{OWNER}[gateway]\npublic_url = "http://a.example.com"',
        f'{OWNER}[gateway]\npublic_url = "http://localhost:3000"',
        "http://a.example.com",
        "gateway.public_url",
    ),
    "E117": Case(
        f'{OWNER}[gateway]\npublic_url = "https://a.example.com"\npreview_url = "https://A.example.com:8443"',
        f'{OWNER}[gateway]\npublic_url = "https://a.example.com"\npreview_url = "https://p.example.net"',
        "a.example.com",
        "gateway.preview_url",
    ),
    "W118": Case(
        f'{OWNER}[gateway]\nhost = "0.0.0.0"',
        f'{OWNER}[gateway]\nhost = "0.0.0.0"\npublic_url = "https://a.example.com"',
        "0.0.0.0",
        "gateway.host",
    ),
    "E119": Case(
        '[gateway]\ntrusted_proxies = ["10.0.0.0/8", "caddy"]',
        '[gateway]\ntrusted_proxies = ["10.0.0.0/8", "::1"]',
        "caddy",
        "gateway.trusted_proxies[1]",
    ),
    "E120": Case(
        '[gateway]\nsign_in_idle = "31d"', '[gateway]\nsign_in_idle = "30d"', str(31 * 86400), "gateway.sign_in_idle"
    ),
    "W121": Case(
        '[owner]\nplc_url = "http://plc.example.com"',
        '[owner]\nplc_url = "http://127.0.0.1:2582"',
        "http://plc.example.com",
        "owner.plc_url",
    ),
    "E201": Case('[computer]\nbackend = "docker"', '[computer]\nbackend = "bubblewrap"', "docker", "computer.backend"),
    "E202": Case(
        "[computer.limits]\nprocesses = 0", "[computer.limits]\nprocesses = 1", "0", "computer.limits.processes"
    ),
    "E203": Case(
        '[computer.limits]\nmemory = "17GiB"', '[computer.limits]\nmemory = "16GiB"', "17GiB", "computer.limits.memory"
    ),
    "W204": Case(
        "", '[computer.limits]\nmemory = "1GiB"', "4GiB", "computer.limits.memory", machine={"memory": 2 * GIB}
    ),
    "W205": Case(
        '[computer.limits]\ndisk = "101GiB"', '[computer.limits]\ndisk = "99GiB"', "101GiB", "computer.limits.disk"
    ),
    "E206": Case(
        "[computer.services.web]\nport = 5173",
        '[computer.services.web]\ncommand = "npm run dev"',
        "computer.services.web",
        "computer.services.web",
    ),
    "E207": Case(
        '[computer.services.web]\ncommand = "x"\nport = 80',
        '[computer.services.web]\ncommand = "x"\nport = 8080',
        "80",
        "computer.services.web.port",
    ),
    "E208": Case(
        '[computer.services.web]\ncommand = "x"\nfolder = "site"',
        '[computer.services.web]\ncommand = "x"\nfolder = "/workspace/site"',
        "site",
        "computer.services.web.folder",
    ),
    "W209": Case(
        '[computer]\nhost = "unix:///run/docker.sock"',
        '[computer]\nbackend = "docker"\nhost = "unix:///run/docker.sock"',
        "docker.sock",
        "computer.host",
        keeps_machine={"backends": {"bubblewrap": "", "docker": "", "podman": "", "microvm": ""}},
    ),
    "E210": Case(
        '[computer]\nimage = "/missing"', '[computer]\nimage = "/images/bookworm"', "/missing", "computer.image"
    ),
    "E211": Case(
        '[computer.services."My App"]\ncommand = "x"',
        '[computer.services.my-app]\ncommand = "x"',
        "My App",
        'computer.services."My App"',
    ),
    "E212": Case(
        '[computer]\nbackend = "attached"\nhost = "tls://computer.internal:7000"',
        '[computer]\nbackend = "attached"\nhost = "unix:///var/lib/freehold-link"',
        "tls://computer.internal:7000",
        "computer.host",
        machine={"backends": {"bubblewrap": "", "docker": "", "podman": "", "microvm": "", "attached": ""}},
    ),
    "E241": Case(
        '[image]\npackages = ["git; rm -rf /"]', '[image]\npackages = ["git"]', "git; rm -rf /", "image.packages[0]"
    ),
    "E242": Case(
        '[image.files]\n"/proc/x" = "~/skills"',
        '[image.files]\n"/opt/skills" = "~/skills"',
        "/proc/x",
        'image.files."/proc/x"',
    ),
    "E221": Case(
        '[[computer.mounts]]\nsource = "~/.ssh"\ntarget = "/mnt/a"',
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/mnt/a"',
        "~/.ssh",
        "computer.mounts[0].source",
    ),
    "W222": Case(
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/mnt/a"\nwritable = true',
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/mnt/a"\nwritable = false',
        "~/code",
        "computer.mounts[0].writable",
    ),
    "E223": Case(
        '[[computer.mounts]]\nsource = "~/missing"\ntarget = "/mnt/a"',
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/mnt/a"',
        "~/missing",
        "computer.mounts[0].source",
    ),
    "E224": Case(
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/usr/lib"',
        '[[computer.mounts]]\nsource = "~/code"\ntarget = "/workspace/code"',
        "/usr/lib",
        "computer.mounts[0].target",
    ),
    "E225": Case(
        '[[computer.mounts]]\nkind = "git"\nsource = "~/code"\ntarget = "/mnt/a"',
        '[[computer.mounts]]\nkind = "git"\nsource = "~/code"\ntarget = "/mnt/a"\ncommit = "v1"',
        "needs commit",
        "computer.mounts[0].commit",
    ),
    "E226": Case(
        REMOTE + 'endpoint = "ftp://files.example.org"',
        REMOTE + 'endpoint = "https://files.example.org"',
        "ftp://files.example.org",
        "computer.mounts[0].endpoint",
    ),
    "W227": Case(
        REMOTE + 'endpoint = "http://files.example.org"',
        REMOTE + 'endpoint = "http://127.0.0.1:9000"',
        "is not encrypted",
        "computer.mounts[0].endpoint",
    ),
    "W301": Case('[egress]\nmode = "allow"', '[egress]\nmode = "ask"', "allow", "egress.mode"),
    "E302": Case('[egress]\nallow = ["10.0.0.0/8"]', '[egress]\nallow = ["9.9.9.9"]', "10.0.0.0/8", "egress.allow[0]"),
    "E303": Case('[egress]\nallow = ["*.com"]', '[egress]\nallow = ["*.example.com"]', "*.com", "egress.allow[0]"),
    "E304": Case('[egress]\ndeny = ["a..com"]', '[egress]\ndeny = ["a.com:443"]', "a..com", "egress.deny[0]"),
    "W305": Case(
        '[egress]\nallow = ["a.com"]\ndeny = ["A.com"]',
        '[egress]\nallow = ["a.com"]\ndeny = ["*.a.com"]',
        "a.com",
        "egress.allow[0]",
    ),
    "E401": Case(
        '[models.openai]\nkind = "openai"\nkey = "sk-abcdefghijklmnop1234"',
        '[models.openai]\nkind = "openai"\nkey = "secret:openai"',
        "sk-…",
        "models.openai.key",
    ),
    "E402": Case(
        '[models.openai]\nkind = "openai"\nkey = "<your key here>"',
        '[models.openai]\nkind = "openai"\nkey = "env:MY_KEY"',
        "<your key here>",
        "models.openai.key",
        environ=KEY,
    ),
    "E403": Case(
        '[models.openai]\nkind = "openai"\nkey = "env:NOT_SET"',
        '[models.openai]\nkind = "openai"\nkey = "env:MY_KEY"',
        "NOT_SET",
        "models.openai.key",
        environ=KEY,
    ),
    "E404": Case(
        '[models.local]\nmodel = "qwen"',
        '[models.local]\nbase_url = "http://127.0.0.1:11434/v1"',
        "local",
        "models.local",
    ),
    "E405": Case(
        '[models.openai]\nkind = "openai"',
        '[models.openai]\nkind = "openai"\nkey = "secret:openai"',
        "https://api.openai.com/v1",
        "models.openai",
    ),
    "W406": Case(
        "[models.a]\nenabled = false\n[models.b]\nenabled = false",
        '[models.a]\nenabled = false\n[models.b]\nbase_url = "http://127.0.0.1:1"',
        "a, b",
        "models",
    ),
    "E407": Case(
        "[models.a]\nenabled = false\n[models.a.budget]\nday_cost = 0",
        "[models.a]\nenabled = false\n[models.a.budget]\nday_cost = 0.5",
        "0",
        "models.a.budget.day_cost",
    ),
    "W408": Case(
        "[models.a]\nenabled = false\nbudget = { day_tokens = 11, month_tokens = 10 }",
        "[models.a]\nenabled = false\nbudget = { day_tokens = 10, month_tokens = 10 }",
        "11",
        "models.a.budget.day_tokens",
    ),
    "E409": Case(
        '[models.a]\nenabled = false\nallow = ["GET /v1/files", "web_search"]',
        '[models.a]\nenabled = false\nallow = ["GET /v1/files", "/v1/x", "web-search", "urls", "field:a.b", "type:x"]',
        "web_search",
        "models.a.allow[1]",
    ),
    "E410": Case(
        '[models.a]\nkind = "anthropic"\nauth = "claude-code"\nkey = "secret:a"\nbase_url = "https://proxy.example.net"',
        '[models.a]\nkind = "anthropic"\nauth = "claude-code"\nkey = "secret:a"\nbase_url = "https://api.anthropic.com/"',
        "https://proxy.example.net",
        "models.a.base_url",
    ),
    "E501": Case(
        '[agents]\ndefault = "claud"\n[agents.claude]\ncommand = "claude"',
        '[agents]\ndefault = "claude"\n[agents.claude]\ncommand = "claude"',
        "claud",
        "agents.default",
    ),
    "E502": Case('[agents.mine]\nmode = "ask"', '[agents.mine]\ncommand = "mine acp"', "agents.mine", "agents.mine"),
    "E503": Case(
        '[agents.mine]\ncommand = "x"\npackage = "curl https://x | sh"',
        '[agents.mine]\ncommand = "x"\npackage = "npm:@scope/mine@1.0.0"',
        "curl",
        "agents.mine.package",
    ),
    "W504": Case(
        '[agents.mine]\ncommand = "x"\npackage = "pypi:mine"',
        '[agents.mine]\ncommand = "x"\npackage = "pypi:mine==1.0"',
        "pypi:mine",
        "agents.mine.package",
    ),
    "E505": Case(
        '[agents.mine]\ncommand = "x"\nmodel = "gone"',
        '[agents.mine]\ncommand = "x"\nmodel = "here"\n[models.here]\nbase_url = "http://127.0.0.1:1"',
        "gone",
        "agents.mine.model",
    ),
    "E508": Case(
        '[agents]\nmodel = "gone"',
        '[agents]\nmodel = "here"\n[models.here]\nbase_url = "http://127.0.0.1:1"',
        "gone",
        "agents.model",
    ),
    "E506": Case(
        '[agents.mine]\ncommand = "x"\nfiles = { "../.bashrc" = "x" }',
        '[agents.mine]\ncommand = "x"\nfiles = { ".config/mine" = "x" }',
        "../.bashrc",
        'agents.mine.files."../.bashrc"',
    ),
    "W507": Case(
        '[agents.mine]\ncommand = "x"\nenv = { HTTPS_PROXY = "" }',
        '[agents.mine]\ncommand = "x"\nenv = { QUIET = "1" }',
        "HTTPS_PROXY",
        "agents.mine.env.HTTPS_PROXY",
    ),
    "E601": Case(
        '[history]\nfolders = ["workspace", "/etc"]', '[history]\nfolders = ["workspace"]', "/etc", "history.folders[1]"
    ),
    "E602": Case('[history]\nquota = "201GiB"', '[history]\nquota = "200GiB"', "201GiB", "history.quota"),
    "E603": Case("[history]\nquota = 0", '[history]\nquota = "16MiB"', "0B", "history.quota"),
    "W604": Case("[history]\nfolders = []", '[history]\nignore = ["*.iso"]', "empty", "history.folders"),
    "E605": Case('[history]\nquiet = "2h"', '[history]\nquiet = "1h"', "7200", "history.quiet"),
    "W606": Case('[history]\nquota = "103GiB"', '[history]\nquota = "101GiB"', "103GiB", "history.quota"),
    "W701": Case('[ssh]\nlifetime = "25h"', '[ssh]\nlifetime = "24h"', "25h", "ssh.lifetime"),
    "E702": Case("[ssh]\nlifetime = 0", "[ssh]\nlifetime = 60", "0", "ssh.lifetime"),
    "E711": Case(
        '[slots]\nbeads = "external"',
        '[slots.beads]\nmode = "external"\nsettings = { url = "postgresql://b.example.com/b" }',
        "slots.beads",
        "slots.beads",
    ),
    "E712": Case(
        "[slots.pods]\nrequired = true", '[slots.pods]\nrequired = true\nmode = "local"', "pods", "slots.pods.required"
    ),
    "W713": Case(
        '[slots.pods]\nsettings = { url = "https://b.example.com" }',
        '[slots.pods]\nmode = "external"\nsettings = { url = "https://b.example.com" }',
        "pods",
        "slots.pods.settings",
    ),
    "W714": Case(
        '[slots.beads]\nmode = "external"\nsettings = { url = "https://b.example.com" }',
        '[slots.beads]\nmode = "external"\nsettings = { url = "https://b.example.com", token = "env:HOME" }',
        "token",
        "slots.beads.settings",
    ),
    "E721": Case(
        '[mesh]\nmode = "client"', '[mesh]\nmode = "client"\nhost = "https://h.example.com"', "client", "mesh.mode"
    ),
    "E722": Case(
        '[mesh]\nhost = "h.example.com"', '[mesh]\nhost = "https://h.example.com"', "h.example.com", "mesh.host"
    ),
    "E271": Case(
        "[deploy]\ncaddy = true",
        '[owner]\ndid = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"\n[gateway]\npublic_url = "https://a.example.com"\n[deploy]\ncaddy = true',
        "public_url",
        "deploy.caddy",
    ),
    "E272": Case("[deploy]\nssh_port = 80", "[deploy]\nssh_port = 22", "80", "deploy.ssh_port"),
    "E273": Case('[deploy]\nmemory = "10MiB"', '[deploy]\nmemory = "1GiB"', "10485760", "deploy.memory"),
    "E274": Case(
        '[deploy.kubernetes]\nprivate_networks = ["10.96.0.1/12"]',
        '[deploy.kubernetes]\nprivate_networks = ["10.96.0.0/12"]',
        "10.96.0.1/12",
        "deploy.kubernetes.private_networks[0]",
    ),
    "E761": Case('[backup]\nto = "backups"', '[backup]\nto = "/mnt/backups"', "backups", "backup.to"),
    "E762": Case(
        '[backup]\nto = "~/.local/share/freehold/backups"', '[backup]\nto = "/mnt/backups"', "inside", "backup.to"
    ),
    "E763": Case(
        '[backup]\nto = "sftp://me@host/x"\nkey = "env:PASSWORD"',
        '[backup]\nto = "sftp://me@host/x"\nkey = "secret:backup"',
        "vault",
        "backup.key",
    ),
    "W764": Case(
        '[backup]\nendpoint = "http://s3.example.com"',
        '[backup]\nendpoint = "http://127.0.0.1:9000"',
        "without TLS",
        "backup.endpoint",
    ),
    "E723": Case(
        '[mesh]\nrelays = ["http://r.example.com"]',
        '[mesh]\nrelays = ["wss://r.example.com", "ws://localhost:7777"]',
        "http://r.example.com",
        "mesh.relays[0]",
    ),
    "E725": Case(
        '[mesh.relay]\nowner = "npub1x"',
        '[mesh.relay]\nowner = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"',
        "npub1x",
        "mesh.relay.owner",
    ),
    "E724": Case(
        "[mesh]\nrequired = true", '[mesh]\nrequired = true\nmode = "peer"', "mesh.mode is off", "mesh.required"
    ),
    "E811": Case('[retention]\nusage = "30d"', '[retention]\nusage = "32d"', "30d", "retention.usage"),
    "E741": Case(
        '[routines.report]\nprompt = "Report."',
        '[routines.report]\nprompt = "Report."\nevery = "1h"',
        "none",
        "routines.report",
    ),
    "E742": Case(
        '[routines.report]\nprompt = "Report."\ncron = "61 * * * *"',
        '[routines.report]\nprompt = "Report."\ncron = "59 * * * *"',
        "61 * * * *",
        "routines.report.cron",
    ),
    "E743": Case(
        '[routines.Report]\nprompt = "Report."\nevery = "1h"',
        '[routines.report]\nprompt = "Report."\nevery = "1h"',
        "Report",
        "routines.Report",
    ),
    "E744": Case(
        '[routines.report]\nprompt = "Report."\nafter = "routine:report"',
        '[routines.report]\nprompt = "Report."\nafter = "routine:fetch"',
        "report",
        "routines.report.after",
    ),
    "E781": Case(
        '[fleet]\nenabled = true\naddress = "0.0.0.0"',
        '[fleet]\nenabled = true\naddress = "10.0.0.5"',
        "0.0.0.0",
        "fleet.address",
    ),
    "E782": Case("[fleet]\nruns = true", "[fleet]\nenabled = true\nruns = true", "true", "fleet.runs"),
    "E783": Case(
        '[fleet.autoscaler]\nstart = "/srv/start"\nstop = "/srv/stop"\n[fleet.autoscaler.machines.small]\nmin = 3\nmax = 2',
        '[fleet.autoscaler]\nstart = "/srv/start"\nstop = "/srv/stop"\n[fleet.autoscaler.machines.small]\nmin = 1\nmax = 2',
        "3",
        "fleet.autoscaler.machines.small.min",
    ),
    "E784": Case(
        '[fleet]\nenabled = true\nruns = true\n[computer]\nimage = "built"',
        '[fleet]\nenabled = true\n[computer]\nimage = "built"',
        "built",
        "fleet.runs",
    ),
    "E801": Case('[observe]\nlog_level = "verbose"', '[observe]\nlog_level = "debug"', "verbose", "observe.log_level"),
    "E901": Case(
        '[egress]\nallow = ["192.168.1.5:8080"]',
        '[egress]\nallow = ["192.168.1.5:8080"]\n[security.exceptions.private-egress]\nreason = "the printer"',
        "192.168.1.5",
        "egress.allow[0]",
    ),
    "W902": Case(
        '[security.exceptions.private-egress]\nreason = "the printer"',
        '[egress]\nallow = ["192.168.1.5:8080"]\n[security.exceptions.private-egress]\nreason = "the printer"',
        "private-egress",
        "security.exceptions.private-egress",
    ),
    "E903": Case(
        '[security.exceptions.privat-egress]\nreason = "x"',
        '[security.exceptions.private-egress]\nreason = "x"',
        "privat-egress",
        "security.exceptions.privat-egress",
    ),
    "W904": Case(
        '[security.exceptions.plain-model]\nreason = "x"\nuntil = 2026-11-14',
        '[security.exceptions.plain-model]\nreason = "x"\nuntil = 2026-11-15',
        "2026-11-14",
        "security.exceptions.plain-model.until",
        machine={"today": datetime.date(2026, 11, 15)},
    ),
    "E905": Case(
        "[security.exceptions.plain-model]\nuntil = 2027-01-01",
        '[security.exceptions.plain-model]\nreason = "the model is on our VPN"',
        "plain-model",
        "security.exceptions.plain-model",
    ),
    "E921": Case(
        '[mcp.notes]\nurl = "ftp://notes.example"',
        '[mcp.notes]\nurl = "https://notes.example/mcp"\nkey = "secret:notes"',
        "ftp://notes.example",
        "mcp.notes.url",
    ),
    "E922": Case('[mcp.Notes_x]\ncommand = "notes"', '[mcp.notes-x]\ncommand = "notes"', "Notes_x", "mcp.Notes_x"),
    "E923": Case(
        '[browser]\nenabled = true\nprogram = "chromium"\n[security.exceptions.browser]\nreason = "for the web"',
        '[browser]\nenabled = true\n[security.exceptions.browser]\nreason = "for the web"',
        "chromium",
        "browser.program",
    ),
    "E924": Case(
        '[gpu]\nenabled = true\ncards = [-1]\n[security.exceptions.gpu]\nreason = "agents train"',
        '[gpu]\nenabled = true\n[security.exceptions.gpu]\nreason = "agents train"',
        "-1",
        "gpu.cards",
    ),
    "E925": Case(
        '[desktop]\nenabled = true\nwidth = 10\n[security.exceptions.desktop]\nreason = "windows"',
        '[desktop]\nenabled = true\n[security.exceptions.desktop]\nreason = "windows"',
        "10",
        "desktop.width",
    ),
    "E926": Case(
        '[editor]\nenabled = true\nprogram = "code-server"\n[security.exceptions.editor]\nreason = "I edit"',
        '[editor]\nenabled = true\n[security.exceptions.editor]\nreason = "I edit"',
        "code-server",
        "editor.program",
    ),
    "E931": Case(
        '[credentials.notes]\nhost = "https://notes.example"\nsecret = "secret:notes"',
        '[credentials.notes]\nhost = "notes.example:8443"\nsecret = "secret:notes"\npaths = ["/me/"]\nenv = ["NOTES_TOKEN"]',
        "https://notes.example",
        "credentials.notes.host",
    ),
    "E932": Case(
        '[credentials.Notes_x]\nhost = "notes.example"\nsecret = "secret:notes"',
        '[credentials.notes-x]\nhost = "notes.example"\nsecret = "secret:notes"',
        "Notes_x",
        "credentials.Notes_x",
    ),
    "E933": Case(
        '[credentials.a]\nhost = "a.example"\nsecret = "secret:a"\nenv = ["TOKEN"]\n'
        '[credentials.b]\nhost = "b.example"\nsecret = "secret:b"\nenv = ["TOKEN"]',
        '[credentials.a]\nhost = "a.example"\nsecret = "secret:a"\nenv = ["A_TOKEN"]\n'
        '[credentials.b]\nhost = "b.example"\nsecret = "secret:b"\nenv = ["TOKEN"]',
        "both set the variable TOKEN",
        "credentials.b",
    ),
}
