"""Programs of every day with arguments that may run or write something, in every way to write an argument."""

import tomllib
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_name('fuzzing.toml').read_text())
READERS, WRITERS, OPTIONS = _WORDS['readers'], _WORDS['writers'], _WORDS['options']
VALUES, ASSIGNMENTS = _WORDS['values'], _WORDS['assignments']
GROWING, ENDS, PIECES = _WORDS['growing'], _WORDS['ends'], _WORDS['pieces']


def arguments(random, program, word):
    """Some arguments for a program, each written in some way; `word` makes other words."""
    own = OPTIONS.get(program.split()[0], [])
    made = []
    for _ in range(random.randint(0, 6)):
        pick = random.random()
        text = (
            random.choice(own)
            if own and pick < 0.75
            else random.choice(OPTIONS[random.choice(list(OPTIONS))])
            if pick < 0.85
            else word()
        )
        made.append(_written(random, text))
    return made


def _written(random, text):
    match random.randint(0, 14):
        case 0 if text.startswith('--'):
            return text.partition('=')[0][: random.randint(3, 12)]
        case 1:
            return f'{text}=tripped'
        case 2:
            return f'{text}tripped'
        case 3 if len(text) == 2 and text[0] == '-':
            return f'-{random.choice("abcnrsuz")}{text[1]}'
        case 4:
            return f'{text} tripped'
        case 5:
            return f'{text}$x'
        case 6:
            return f'{text}"$x"'
        case 7:
            return f'-- {text}'
        case 8:
            return f'"{text}"'
        case 9:
            return text[:1] + '\\' + text[1:]
        case 10:
            return f'{text}"$@"'
        case _:
            return text
