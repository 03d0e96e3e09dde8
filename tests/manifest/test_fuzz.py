"""Whatever stands in the file or the environment, the answer is a list of problems and never a traceback."""

import tomllib

import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.manifest.machine import look

from freehold.manifest.loader import LoadedManifest
from freehold.manifest.model import Manifest
from freehold.manifest.shape import ROOT, KeyShape, list_keys, show_example, step_into
from freehold.manifest.template import starter_manifest

ODD = st.sampled_from(
    ["", " ", "..", "/", "~", "~nobody/x", "*", "*.", "[::1", "[::1]:x", "::1%eth0", "http://[", "https://a:b:c", "did:web:", "env:", "secret:",
     "a" * 300, "\u202e", "\u0130stanbul.com", "xn--", "xn--a.com", "0x7f.1", "1e999", "-0", "4GiB", "10m", "9" * 30 + "d", '"', "'", "\\", "{}", "\n", "\x7f", "\u2028"]
)  # fmt: skip
SCALARS = st.one_of(
    ODD,
    st.text(max_size=20),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 80, 3000, 3128, 65535, 65536]),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
)
NAMES = (
    ODD | st.text(max_size=10) | st.sampled_from(["web", "openai", "local", "builtin", "plain-model", "private-egress"])
)
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def trees(shape: KeyShape) -> st.SearchStrategy[object]:
    """Manifests whose keys are mostly right, with values that are mostly wrong."""
    if shape.many == "listed":
        return st.lists(trees(KeyShape(shape.model)), max_size=3) | ANY
    if shape.many == "named":
        return st.dictionaries(NAMES, trees(KeyShape(shape.model)), max_size=3) | ANY
    if shape.model is None:
        examples = shape.field.examples if shape.field and shape.field.examples else []
        return st.one_of(SCALARS, st.lists(SCALARS, max_size=3), ANY, *(st.just(example) for example in examples))
    below = {key: step_into(shape, key) for key in shape.keys}
    known = st.fixed_dictionaries({}, optional={key: trees(inner) for key, inner in below.items() if inner})
    return st.builds(lambda right, wrong: {**wrong, **right}, known, st.dictionaries(NAMES, ANY, max_size=2)) | known


def check_answer(loaded: LoadedManifest) -> None:
    """The answer can be printed, every problem says where and what to do, and the manifest is whole."""
    assert isinstance(loaded.manifest, Manifest)
    assert len(loaded.checksum) == 64
    for problem in loaded.problems:
        told = f"{problem.place} {problem.code} {problem.message} {problem.key}"
        assert told.isprintable(), told
        told.encode()
        problem.hint.encode()
        assert problem.hint


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_bytes(data: bytes) -> None:
    check_answer(look(data))


@settings(deadline=None)
@given(st.text(alphabet="[]{}=\"'\\.,#\n\r\t 0123456789abegtwy-_:", max_size=120))
def test_text_that_looks_like_toml(text: str) -> None:
    check_answer(look(text))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(trees(ROOT))
def test_well_formed_nonsense(tree: object) -> None:
    if not isinstance(tree, dict):
        return
    text = tomlkit.dumps(tree)
    try:
        tomllib.loads(text)
    except ValueError:
        return  # the writer's mistake, and covered by the tests above
    check_answer(look(text))


VARIABLES = st.sampled_from(
    ["FREEHOLD_" + "_".join(path).upper().replace("<NAME>", "X").replace("[]", "0") for path, _ in list_keys()]
    + ["OWNER_DID", "PUBLIC_URL", "ATPROTO_SERVICE", "SANDBOX_HOST", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "FREEHOLD_", "FREEHOLD__", "FREEHOLD_MODELS_", "FREEHOLD_AGENTS__COMMAND"]
)  # fmt: skip
TEXTS = st.one_of(
    ODD, st.text(st.characters(exclude_characters="\0"), max_size=30), st.just("[" * 2000), st.just("\udcff")
)


@settings(deadline=None)
@given(st.dictionaries(VARIABLES | st.text(max_size=10).map(lambda rest: f"FREEHOLD_GATEWAY_{rest}"), TEXTS, max_size=4), st.sampled_from(["", "models = 3", "slots = 'x'", "[slots]\nbeads = 'local'", "agents = []"]))  # fmt: skip
def test_environment(environ: dict[str, str], text: str) -> None:
    check_answer(look(text, environ))


STARTER = starter_manifest({}).replace("\n# ", "\n").encode()


@settings(deadline=None)
@given(st.integers(0, len(STARTER)), st.integers(0, 40), st.binary(max_size=8))
def test_a_good_manifest_that_was_damaged(at: int, length: int, junk: bytes) -> None:
    check_answer(look(STARTER[:at] + junk + STARTER[at + length :]))


def test_examples_are_themselves_right() -> None:
    for path, field in list_keys():
        line = show_example(path[-1], field)
        table = ".".join("x" if part == "<name>" else part for part in path[:-1])
        text = f"[[{table[:-3]}]]\n{line}" if table.endswith(".[]") else f"[{table}]\n{line}"
        assert not {"E003", "E005", "E006"} & {problem.code for problem in look(text).problems}, text
