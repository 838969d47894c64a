"""Shell scripts are followed as bash would, nothing is run, and what is not known is never guessed."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.configurations.shell import MAYBE, UNKNOWN, Script, follow
from planner.configurations.shell.lexer import plain_words
from planner.configurations.shell.text import Text


def commands(text: str, **known: str) -> list[list[str]]:
    return [[word.chars for word in command.words] for command in follow(text, known).commands]


def words(text: str, **known: str) -> list[str]:
    """Return the words of the only command."""
    (found,) = commands(text, **known)
    return found


SCRIPTS = [
    "A=3\nB=$((A * (2 + 1) - 7 / 2 % 3))\nshow $A ${B} x$A-$B",
    'A="a b"\nshow $A "$A" \'$A\' "${A}c" \\$A',
    'A=(one "two three" \'four\')\nA+=(five)\nshow "${A[@]}" ${A[@]} "${A[*]}" ${A[1]} $A',
    "A=1 # a comment\nshow $A#no # yes",
    "show a \\\n  b \\\n  c",
    "A=${B:-7}\nC=\nshow $A ${C:-empty} ${C-kept} x${A:-9}x",
    'A="--x 1 \\\n   --y 2"\nA+=" --z 3"\nshow $A',
    "A=-7\nshow $((A / 2)) $((A % 2)) $((-A)) $(( (1+2)*3 ))",
    "if [ 3 -gt 2 ]; then A=yes; else A=no; fi\nshow $A",
    'X=b\nif [[ "$X" == "a" ]]; then A=1; elif [ "$X" = b ]; then A=2; else A=3; fi\nshow $A',
    "X=7b\ncase $X in\n  3b) A=1 ;;\n  7b|8b) A=2 ;;\n  *) A=3 ;;\nesac\nshow $A",
    "X=9\ncase $X in 3) A=1 ;; *) A=3 ;; esac; show $A",
    "A=1; export B=2; readonly C=3; show $A $B $C",
    "show a 2> /dev/null b 1>&1",
    "cat <<EOF > /dev/null\nshow never\nEOF\nshow after",
    "R=\"show 1 '2 3'\"\neval $R",
    "R='show 1 2'\nbash -c \"$R\"",
    "true && show and",
    "{ A=4; }\nshow $A",
    'show "a\\"b" "c\\$d" \'e"f\' "g\\\\h"',
    "A=5\nshow ${A}B ${A}_$A",
    'if [ -z "" ]; then show empty; fi',
    "if ! [ 1 -eq 2 ]; then show unlike; fi",
    "A='x'\nA=$A$A\nshow $A",
    "f() { A=1; }\nf\nshow $A",
    "A=1\nfunction f { show f $A; }\nA=2\nf",
    "f()\n{\n  A=$B\n  { show g $A; }\n}\nB=3\nf",
    "show --a=1 '' \"\" end",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is what it is held against")
@pytest.mark.parametrize("text", SCRIPTS)
def test_words_are_those_of_bash(text: str) -> None:
    """Every script is run with a command that shows its words, one a line."""
    show = 'show() { for word in "$@"; do printf \'<%s>\\n\' "$word"; done; }\nexport -f show\n'
    done = subprocess.run(["bash", "-c", show + text], capture_output=True, text=True, check=True, timeout=20)
    found = [command for command in commands(text) if command[0] == "show"]
    assert "".join(f"<{word}>\n" for word in found[-1][1:]) == done.stdout


def test_words_know_where_they_stand() -> None:
    """Through variables, arrays and strings that are run."""
    text = 'A=(--one \\\n   1)\nB="--two 2"\nrun ${A[@]} $B'
    (command,) = follow(text).commands
    assert [(word.chars, word.spot) for word in command.words] == [
        ("run", (4, 1)),
        ("--one", (1, 4)),
        ("1", (2, 4)),
        ("--two", (3, 4)),
        ("2", (3, 10)),
    ]
    script = follow('R="go --x 3"\nsrun bash -c "$R"')
    assert [(word.chars, word.spot) for word in script.commands[-1].words][1] == ("--x", (1, 7))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("run $NOWHERE", "$NOWHERE is not set in the script"),
        ("A=$(nproc)\nrun $A", "what a command prints is only known when it runs"),
        ("A=`nproc`\nrun $A", "what a command prints is only known when it runs"),
        ("A=1\nfor i in 1 2; do A=$i; done\nrun $A", "$A is set under a condition or in a loop"),
        ("if [ -f x ]; then A=1; fi\nrun $A", "$A is set under a condition or in a loop"),
        ("[ -f x ] && A=1\nrun $A", "$A is set under a condition or in a loop"),
        ("f() { A=1; }\nif [ -f x ]; then f; fi\nrun $A", "$A is set under a condition or in a loop"),
        ("A=abc\nrun ${A%c}", "${A...} changes text, which is not followed"),
        ("A=x\nrun $((A * 2))", "$((A * 2)) cannot be worked out"),
        ("run $((1 / 0))", "$((1 / 0)) cannot be worked out"),
    ],
)
def test_what_is_not_known_has_a_reason(text: str, reason: str) -> None:
    """The word is unknown, and why is kept by its place."""
    script = follow(text)
    found = next(command for command in script.commands if command.words[0].chars == "run")
    assert found.words[1].chars == UNKNOWN
    assert script.variables.reasons[found.words[1].spot] == reason


def test_what_stands_under_a_condition_is_there_perhaps() -> None:
    """Flags that are appended there are marked, those before it are not; a branch that is known is taken or left."""
    assert words("A=(--x)\nif [ -d y ]; then A+=(--z 1); fi\nrun ${A[@]}") == ["run", "--x", f"{MAYBE}--z", f"{MAYBE}1"]
    assert words('A="--x"\nif [ -d y ]; then A="$A --z"; fi\nrun $A')[1:] == [
        f"{MAYBE}--x",
        f"{MAYBE}--x",
        f"{MAYBE}--z",
    ]
    assert words("N=2\nif [ $N -gt 1 ]; then A=--many; else A=--one; fi\nrun $A") == ["run", "--many"]


def test_functions_that_nothing_calls_are_followed_at_the_end() -> None:
    """They may be handed on by name, as to srun."""
    assert commands('go() { N=8; run $N $M; }\nM=2\nsrun bash -c "$(declare -f go); go"')[-1] == ["run", "8", "2"]
    assert commands("f() { f; }\nf\nrun") == [["run"]]


def test_notes_name_lines_and_defaults() -> None:
    """What is not followed is said by its line, and what is taken from defaults by its name."""
    script = follow("A=${TP:-4}\nif [ -f x ]; then B=1; fi\nsource other.sh\nrun $A")
    assert script.notes == (
        "defaults are taken for what the environment may set: TP",
        "conditions, loops and files read in are not followed, and what they set is left open: line 2, 3",
    )


def environment(text: str) -> dict[str, str]:
    script: Script = follow(text)
    return {name: value.chars for name, value in script.environment(script.commands[-1]).items()}


def test_commands_get_what_is_exported() -> None:
    """And what stands before them, or behind ``env``; a variable that is only set stays in the shell."""
    assert environment("export A=1\nB=2\nC=3 run") == {"A": "1", "C": "3"}
    assert environment("A=1\nexport A\nenv D=4 run") == {"A": "1", "D": "4"}


def test_scripts_that_grow_are_cut_short() -> None:
    """Doubling a variable sixty times, an array, and strings that run themselves end at once."""
    assert set(words("A=x\n" + 'A="$A$A"\n' * 60 + "run $A")[1]) == {UNKNOWN}
    assert len(words("A=(x)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60 + "run ${A[@]}")) <= 20_001
    assert commands('X=\'eval "$X"; eval "$X"\'\neval "$X"\nrun')[-1] == ["run"]


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(text=st.text(alphabet="aA1=+-$(){}[]\"'`\\|&;<>#* \n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """No text makes it fail, and the words of commands stand in it."""
    for command in follow(text).commands:
        assert all(len(word.chars) == len(word.at) for word in command.words)


def test_plain_words_have_quotes_but_no_operators() -> None:
    """A list of arguments may hold layouts as they are; comments and continued lines do not count."""
    text = '--layout Et|tL # a comment\n--name \'a b\' "c d" \\\n --x="1 2"z'
    assert [word.chars for word in plain_words(Text.of(text))] == [
        "--layout",
        "Et|tL",
        "--name",
        "a b",
        "c d",
        "--x=1 2z",
    ]
