"""`freehold skills`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from freehold.agents.visible_text import make_visible
from freehold.cli._home_files import record_act
from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option, require_home
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills.checks import SkillFinding, SkillScript
from freehold.skills.lock import SkillSource
from freehold.strict_json import EpochSeconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from freehold.client.skill_models import LookedSkill, SkillFileChange, SkillFindingInfo, SkillScriptInfo
    from freehold.skills.library import SkillChange, SkillDetails
    from freehold.skills.loads import SkillUse
    from freehold.skills.sources import FoundSkill, Refused


@dataclass(frozen=True)
class ListedSkill:
    """`digest` is the version. `loads` is how often agents have read it."""

    name: str
    digest: str
    size: int
    files: int
    description: str
    source: SkillSource
    added: EpochSeconds
    is_on: bool
    loads: int


@dataclass(frozen=True)
class AddedSkills:
    added: tuple[str, ...]


@dataclass(frozen=True)
class ShownSkill:
    """`paths` has its files; `scripts` those that can be run."""

    name: str
    digest: str
    size: int
    files: int
    description: str
    source: SkillSource
    added: EpochSeconds
    is_on: bool
    scripts: tuple[SkillScript, ...]
    findings: tuple[SkillFinding, ...]
    paths: tuple[str, ...]
    instructions: str


@dataclass(frozen=True)
class CheckedSkill:
    name: str
    findings: tuple[SkillFinding, ...]


commit_option = click.option(
    "--commit", metavar="COMMIT", help="A commit, tag or branch of SOURCE, which is a git repository. It is pinned."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group(invoke_without_command=True)
@home_option
@json_option(JsonOutput(ListedSkill, "list"))
@click.pass_context
def command(ctx: click.Context, home: Home, as_json: bool) -> None:
    """List and change the skills that agents are shown.

    A skill is a folder with a SKILL.md: instructions, and scripts, references and assets beside them. What you add is
    copied, pinned by its hash in skills.lock, and read-only for agents.

    \b
    Examples:
      freehold skills
      freehold skills add ~/skills/charts
      freehold skills add shipped --all
      freehold skills add skills.zip charts pdf
      freehold skills add https://github.com/anthropics/skills pdf --commit main
      freehold skills show charts
    """
    if ctx.invoked_subcommand is None:
        _list_skills(home, as_json=as_json)


@command.command("list")
@home_option
@json_option(JsonOutput(ListedSkill, "list"))
def list_command(home: Home, as_json: bool) -> None:
    """List the skills with their versions and how often they were loaded.

    \b
    Example:
      freehold skills list
    """
    _list_skills(home, as_json=as_json)


@command.command()
@click.argument("source", metavar="SOURCE")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All skills of SOURCE.")
@commit_option
@yes_option
@home_option
@json_option(JsonOutput(AddedSkills))
def add(
    source: str, names: tuple[str, ...], every: bool, commit: str | None, yes: bool, home: Home, as_json: bool
) -> None:
    """Add skills. Shows their scripts and what was found, and asks before they are used.

    SOURCE is a folder, a tar or zip archive, a git repository on this machine or at an address (then Freehold must run:
    it is fetched through egress), a package such as npm:name@1.2.3 or pypi:name==1.2.3, `shipped` for the skills that
    come with Freehold, or `skill-proposals` for those that agents have written in /workspace/skill-proposals.

    \b
    Examples:
      freehold skills add ~/skills/charts
      freehold skills add shipped pdf slides
      freehold skills add skill-proposals
    """
    from freehold.skills.library import SkillLibrary, choose_skills
    from freehold.skills.sources import is_remote, reasons_of

    require_home(home)
    library = SkillLibrary(home)
    if is_remote(source):
        added = _add_remote(home, source, commit, names, every=every, yes=yes)
    else:
        refused: Refused = {}
        found = library.read(source, commit, refused)
        reasons = reasons_of(refused)
        _show_refused(reasons)
        chosen = choose_skills(found, names, reasons, every=every)
        for one in chosen:
            _show_new(one)
        _confirm(len(chosen), yes=yes)
        added = library.add(chosen)
        for one in chosen:
            data = {"skill": one.package.name, "digest": one.package.digest, "from": one.source.place}
            record_act(home, "skill.added", data)
    if as_json:
        echo_json(AddedSkills(tuple(added)))
    else:
        click.echo(f"Added {', '.join(added)}. New conversations see {'it' if len(added) == 1 else 'them'}.")


@command.command()
@click.argument("name")
@home_option
@json_option(JsonOutput(ShownSkill))
def show(name: str, home: Home, as_json: bool) -> None:
    """Show where a skill is from, its files, scripts and instructions.

    \b
    Example:
      freehold skills show charts
    """
    from freehold.skills.library import SkillLibrary

    found = SkillLibrary(home).describe(name)
    if as_json:
        echo_json(_describe_skill(found), indent=2)
        return
    skill = found.skill
    source = skill.source
    where = " ".join(part for part in (source.place, source.part, source.ref, source.commit) if part)
    click.echo(f"{'name':14}{name}{'' if skill.is_on else ' (off)'}")
    click.echo(make_visible(f"{'description':14}{skill.description}", lines=False))
    click.echo(f"{'version':14}{skill.digest}")
    click.echo(f"{'from':14}{source.kind} {where}")
    click.echo(f"{'size':14}{skill.size} bytes in {skill.files} files")
    for script in found.scripts:
        click.echo(make_visible(f"{'script':14}{script.path}  (runs with {script.runs})", lines=False))
    _show_findings(found.findings)
    click.echo(f"\n{make_visible(found.package.instructions.rstrip())}")


@command.command()
@click.argument("name")
@click.option("--from", "source", metavar="SOURCE", help="Another source than the one it came from.")
@commit_option
@yes_option
@home_option
def update(name: str, source: str | None, commit: str | None, yes: bool, home: Home) -> None:
    """Show what changed in a skill's source, and use it if you agree.

    \b
    Example:
      freehold skills update charts
    """
    from freehold.skills.library import SkillLibrary, latest_of
    from freehold.skills.sources import is_remote

    library = SkillLibrary(home)
    place, newest = latest_of(library.find_source(name))
    place, newest = (source or place), (commit or (None if source else newest))
    if is_remote(place):
        _update_remote(home, name, place, newest, yes=yes)
        return
    refused: Refused = {}
    found = library.find_update(name, library.read(place, newest, refused), refused)
    if found is None:
        click.echo(f"{name} is the same there.")
        return
    _show_changes(library.compare(name, found.package))
    _show_new(found)
    if not yes and not click.confirm("Use this version?", err=True):
        raise click.Abort
    library.add([found], replaces=True)
    record_act(home, "skill.added", {"skill": name, "digest": found.package.digest, "from": found.source.place})
    click.echo(f"Updated {name} to {found.package.digest[:12]}.")


@command.command()
@click.argument("name")
@home_option
def remove(name: str, home: Home) -> None:
    """Remove a skill. Agents no longer see it.

    \b
    Example:
      freehold skills remove charts
    """
    from freehold.skills.library import SkillLibrary

    SkillLibrary(home).remove(name)
    record_act(home, "skill.removed", {"skill": name})
    click.echo(f"Removed {name}.")


@command.command("on")
@click.argument("name")
@home_option
def switch_on(name: str, home: Home) -> None:
    """Show a skill to agents."""
    _switch(home, name, on=True)


@command.command("off")
@click.argument("name")
@home_option
def switch_off(name: str, home: Home) -> None:
    """Keep a skill, and show it to nobody."""
    _switch(home, name, on=False)


@command.command()
@click.argument("source", metavar="[SOURCE]", required=False)
@commit_option
@home_option
@json_option(JsonOutput(CheckedSkill, "list"))
def check(source: str | None, commit: str | None, home: Home, as_json: bool) -> None:
    """Check a source before it is added, or everything that is in use. Exits 1 when something may not be used.

    \b
    Examples:
      freehold skills check ~/skills/charts
      freehold skills check https://github.com/anthropics/skills --commit main
      freehold skills check
    """
    found = _check(home, source, commit)
    if as_json:
        echo_json(found, indent=2)
    else:
        for one in found:
            count = f"{len(one.findings)} findings" if one.findings else "ok"
            click.echo(make_visible(f"{one.name:24}{count}", lines=False))
            _show_findings(one.findings)
    if any(finding.level == "refused" for one in found for finding in one.findings):
        raise SystemExit(1)


def _check(home: Home, source: str | None, commit: str | None) -> list[CheckedSkill]:
    from freehold.skills.checks import check_package
    from freehold.skills.library import SkillLibrary
    from freehold.skills.sources import is_remote, reasons_of

    if source is not None and is_remote(source):
        return _check_remote(home, source, commit)
    library = SkillLibrary(home)
    refused: Refused = {}
    if source is None:
        lock = library.read_lock()
        library.store.check(lock)
        packages = [library.store.read(skill.digest) for skill in lock.skills.values()]
    else:
        packages = [one.package for one in library.read(source, commit, refused)]
    checked = [CheckedSkill(package.name, tuple(check_package(package))) for package in packages]
    return [*checked, *_list_refused(reasons_of(refused))]


def _check_remote(home: Home, place: str, commit: str | None) -> list[CheckedSkill]:
    from freehold.cli._running_freehold import running_freehold

    with running_freehold(home, "skills", "admin") as freehold:
        looked = freehold.skills.look("remote", place, commit=commit)
    checked = [
        CheckedSkill(
            one.content.name,
            tuple(
                SkillFinding("refused" if found.level == "refused" else "noted", found.path, found.line, found.words)
                for found in one.content.findings
            ),
        )
        for one in looked.skills
    ]
    return [*checked, *_list_refused(looked.refused)]


def _list_refused(reasons: "Mapping[str, str]") -> list[CheckedSkill]:
    return [
        CheckedSkill(folder, (SkillFinding("refused", folder, None, f"cannot be read as a skill: {words}"),))
        for folder, words in reasons.items()
    ]


def _list_skills(home: Home, *, as_json: bool) -> None:
    from freehold.skills.library import SkillLibrary

    require_home(home)
    lock = SkillLibrary(home).read_lock()
    uses = _read_uses(home)
    if as_json:
        rows = [
            ListedSkill(name, **vars(skill), loads=uses[name].count if name in uses else 0)
            for name, skill in lock.skills.items()
        ]
        echo_json(rows, indent=2)
        return
    for name, skill in lock.skills.items():
        state = "" if skill.is_on else "  (off)"
        used = f"loaded {uses[name].count}×" if name in uses else "never loaded"
        click.echo(f"{name:24}{skill.digest[:12]}  {used:14}  {_shorten(skill.description)}{state}")
    if not lock.skills:
        click.echo("There are no skills. Add those that come with Freehold: freehold skills add shipped --all")


def _switch(home: Home, name: str, *, on: bool) -> None:
    from freehold.skills.library import SkillLibrary

    SkillLibrary(home).switch(name, on=on)
    record_act(home, "skill.switched", {"skill": name, "on": on})
    click.echo(f"{name} is {'on' if on else 'off'}.")


def _confirm(number: int, *, yes: bool) -> None:
    if not yes and not click.confirm(f"Show {'it' if number == 1 else 'them'} to agents?", err=True):
        raise click.Abort


def _add_remote(
    home: Home, place: str, commit: str | None, names: tuple[str, ...], *, every: bool, yes: bool
) -> list[str]:
    from freehold.cli._running_freehold import running_freehold
    from freehold.skills.library import choose_names

    with running_freehold(home, "skills", "admin") as freehold:
        answer = freehold.skills.look("remote", place, commit=commit)
        _show_refused(answer.refused)
        looked = {one.content.name: one for one in answer.skills}
        chosen = [looked[name] for name in choose_names(list(looked), names, answer.refused, every=every)]
        for one in chosen:
            _show_looked(one)
        _confirm(len(chosen), yes=yes)
        return list(freehold.skills.add([one.content.digest for one in chosen]))


def _update_remote(home: Home, name: str, place: str, commit: str | None, *, yes: bool) -> None:
    from freehold.cli._running_freehold import running_freehold
    from freehold.skills.library import require_not_refused

    with running_freehold(home, "skills", "admin") as freehold:
        answer = freehold.skills.look("remote", place, commit=commit)
        looked = [one for one in answer.skills if one.content.name == name]
        if not looked:
            require_not_refused(name, answer.refused)
            raise FreeholdError("skill.not-found", f"There is no skill {name} in {place}")
        if looked[0].content.digest == looked[0].in_use:
            click.echo(f"{name} is the same there.")
            return
        _show_looked(looked[0])
        if not yes and not click.confirm("Use this version?", err=True):
            raise click.Abort
        freehold.skills.add([looked[0].content.digest])
    click.echo(f"Updated {name} to {looked[0].content.digest[:12]}.")


def _show_refused(reasons: "Mapping[str, str]") -> None:
    for folder, words in reasons.items():
        click.echo(make_visible(f"{folder} cannot be read as a skill: {words}", lines=False), err=True)


def _show_looked(looked: "LookedSkill") -> None:
    content = looked.content
    _show_changes(looked.changes)
    _show_head(content.name, content.description, content.size, len(content.files), content.digest)
    click.echo(f"  commit {looked.source.commit}", err=True)
    _show_scripts(content.scripts)
    _show_findings(content.findings, err=True)


def _read_uses(home: Home) -> "Mapping[str, SkillUse]":
    from freehold.skills.loads import SkillLoads
    from freehold.timeline import Timeline

    if not home.timeline.exists():
        return {}
    with Timeline(home.timeline) as timeline:
        return SkillLoads(timeline, home).read()


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"


def _show_new(found: "FoundSkill") -> None:
    from freehold.skills.checks import check_package, list_scripts

    package = found.package
    _show_head(package.name, package.front_matter.description, package.size, len(package.files), package.digest)
    _show_scripts(list_scripts(package))
    _show_findings(check_package(package), err=True)


def _show_head(name: str, description: str, size: int, files: int, digest: str) -> None:
    click.echo(make_visible(f"{name}: {description}", lines=False), err=True)
    click.echo(f"  {size} bytes in {files} files, version {digest[:12]}", err=True)


def _show_scripts(scripts: "Sequence[SkillScript | SkillScriptInfo]") -> None:
    for one in scripts:
        click.echo(make_visible(f"  script {one.path}, runs with {one.runs}", lines=False), err=True)


def _show_findings(findings: "Sequence[SkillFinding | SkillFindingInfo]", *, err: bool = False) -> None:
    for one in findings:
        line = "" if one.line is None else f":{one.line}"
        click.echo(make_visible(f"  {one.level}: {one.path}{line} {one.words}", lines=False), err=err)


def _show_changes(changes: "Sequence[SkillChange | SkillFileChange]") -> None:
    for change in changes:
        click.echo(f"{change.word}: {change.path}")
        click.echo(make_visible(change.diff) if change.diff is not None else "  (not a short text)")


def _describe_skill(found: "SkillDetails") -> ShownSkill:
    return ShownSkill(
        found.name,
        **vars(found.skill),
        scripts=tuple(found.scripts),
        findings=tuple(found.findings),
        paths=tuple(found.package.files),
        instructions=found.package.instructions,
    )
