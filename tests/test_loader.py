"""The loader: places, and the traps of YAML and JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.loader import MAX_BYTES, dump_yaml, load, parse, scalar


def refusal(text: str, origin: str = "x.yaml") -> str:
    """Return the message with which `text` is refused."""
    with pytest.raises(SpecError) as caught:
        load(text, origin)
    return str(caught.value)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e9", 1e9),
        ("1.5e3", 1500.0),
        ("-2E-3", -0.002),
        ("10", 10),
        ("-0", 0),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("", None),
        ("~", None),
        ("null", None),
        ("nano", "nano"),
    ],
)
def test_words(word: str, value: object) -> None:
    """An unquoted word means what a reader expects, not what YAML 1.1 says."""
    result = scalar(word)
    assert result == value
    assert type(result) is type(value)
    assert load(f"k: {word}\nz: 1\n", "x.yaml").value["k"] == value


@pytest.mark.parametrize("word", ["010", "-07", ".nan", "nan", "NaN", ".inf", "-Infinity", "1e999", "9" * 5000])
def test_traps_are_refused_with_place_and_remedy(word: str) -> None:
    """Octal look-alikes, numbers that are not finite and absurd digits are problems at their line and key."""
    message = refusal(f"a: 1\nb:\n  - c: {word}\n")
    assert message.startswith("x.yaml:3 b[0].c: ")
    assert "write" in message


@pytest.mark.parametrize("word", ["'010'", "'.nan'", "'1e9'", "'true'", "''"])
def test_quotes_make_text(word: str) -> None:
    """Quoted words are text whatever they look like."""
    assert load(f"k: {word}", "x.yaml").value == {"k": word.strip("'")}


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3 a:", "duplicate key, given before in line 1"),
        ("a:\n\tb: 1\n", "x.yaml:2:", "tab"),
        ("\ta: 1\n", "x.yaml:1:", "tab"),
        ("a: [1, 2\nb: 3", "x.yaml:2:", "not valid YAML"),
        ("a: b: c\n", "x.yaml:1:", "quotes"),
        ("a: @b\n", "x.yaml:1:", "quotes"),
        ("a: !!python/object:os.system x\n", "x.yaml:1 a:", "tag"),
        ("a: !!float 3\n", "x.yaml:1 a:", "tag"),
        ("a: &x [*x]\n", "x.yaml:1 a[0]:", "write the value out"),
        ("a: *x\n", "x.yaml:1 a:", "write the value out"),
        ("d: &d {a: 1}\ne:\n  <<: *d\n", "x.yaml:3 e.<<:", "write the keys out"),
        ("? [1, 2]\n: 3\n", "x.yaml:1:", "key"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2:", "second document"),
        ("", "x.yaml:", "is empty"),
        ("# only words\n", "x.yaml:", "is empty"),
        ("null\n", "x.yaml:", "is empty"),
        ("a: 1\nb: \x00\x01\n", "x.yaml:2:", "not text"),
        ("\x7fELF\x02", "x.yaml:1:", "not text"),
    ],
)
def test_bad_yaml(text: str, place: str, words: str) -> None:
    """Whatever is wrong with YAML is told with its place and a remedy."""
    message = refusal(text)
    assert message.startswith(place)
    assert words in message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"a": 1,\n "a": 2}', "x.json:2 a:", "duplicate key"),
        ('{"a": 1,\n "b": NaN}', "x.json:2 b:", "not a finite number"),
        ('{"a": [1,\n 1e999]}', "x.json:2 a[1]:", "not a finite number"),
        ('{"a": 1,\n "b" 2}', "x.json:2:", "not valid JSON"),
        ("", "x.json:", "is empty"),
        ("null", "x.json:", "is empty"),
        ("a: 1", "x.json:1:", "not valid JSON"),
        ('{"a": "\\ud800"}', "x.json:", "half of a character"),
    ],
)
def test_bad_json(text: str, place: str, words: str) -> None:
    """JSON is held to the same rules, at the line where it breaks them."""
    message = refusal(text, "x.json")
    assert message.startswith(place)
    assert words in message


@pytest.mark.parametrize("origin", ["x.yaml", "x.json", "<stdin>"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70])
def test_deep_nesting_is_refused(text: str, origin: str) -> None:
    """Text nested without end is refused before anything breaks."""
    assert "nested" in refusal(text, origin)


def test_alias_bomb_is_refused() -> None:
    """Nine levels of nine aliases each would be 387 million values; they are counted before they exist."""
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    assert "more than 200,000 values" in refusal("\n".join(rows))


def test_aliases_repeat_values() -> None:
    """A plain alias is read."""
    assert load("a: &a [1]\nb: *a\n", "x.yaml").value == {"a": [1], "b": [1]}


def test_large_text_is_refused() -> None:
    """Megabytes of junk get one message."""
    assert "larger than" in refusal("x" * (MAX_BYTES + 1))


def test_all_problems_at_once() -> None:
    """A file is read to its end, and every problem is told."""
    text = "a: 010\na: 2\nb: .nan\n"
    assert [problem.place for problem in parse(text, "x.yaml").problems] == ["x.yaml:1 a", "x.yaml:2 a", "x.yaml:3 b"]


def test_places() -> None:
    """A place has file, line and key; what is missing stands at its parent."""
    for text, origin in (("a:\n  - b: 1\n    c: x\n", "x.yaml"), ('{"a": [\n{"b": 1,\n"c": "x"}]}', "x.json")):
        document = load(text, origin)
        assert document.place(("a", 0, "c")) == f"{origin}:3 a[0].c"
        assert document.place(("a", 0, "d")) == f"{origin}:2 a[0].d"
        assert document.place(()) == f"{origin}:1"


def test_flow_yaml_that_begins_like_json() -> None:
    """Text that begins with a brace may be YAML all the same."""
    assert load("{a: 1, b: NO}", "<stdin>").value == {"a": 1, "b": "NO"}


def test_byte_order_mark_is_ignored() -> None:
    """A byte order mark is not part of the first key."""
    assert load("\ufeffa: 1", "x.yaml").value == {"a": 1}


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff\ufffe\uffff"))
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
traps = st.sampled_from(
    ["010", "1e9", "NO", "true", "", "~", "nan", "12:30", "1_0", "a: b", "- x", "*a", "&a", "<<", "="]
)
leaves = st.none() | st.booleans() | numbers | words | traps
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(words | traps, inner), max_leaves=8)


@given(values.filter(lambda value: value is not None))
def test_dump_then_load(value: object) -> None:
    """What is written is read back the same, types included."""
    assert repr(load(dump_yaml(value), "x.yaml").value) == repr(value)
