"""Made-up entity names of the chain benchmark: unique within a store, with words shared between them."""

from collections.abc import Callable
from random import Random

FIRST = (
    "Marta Ilse Jonas Priya Tomas Aiko Lena Omar Petra Anton Sofia Viktor Nadia Emil Clara Ravi Greta Hugo Mina Oskar "
    "Leila Bruno Hanna Pavel Yara Felix Ines Karim Dora Mateo Elif Simon Rosa Ivan Noor Stefan Amara Luca Vera Joel"
).split()
ONSETS = "B Br C D Dr F G Gr H K L M N P R S St T Tr V W Z".split()
VOWELS = "a e i o u ai ei".split()
CODAS = "l n r s rd lm nd st k v".split()
TOWN_ENDS = "by berg ford haven mere ton vik wald".split()
COLOURS = "amber black blue copper crimson golden green grey ivory pale red silver white".split()
THINGS = (
    "anchor beacon bridge candle crane drum falcon field forest gate harbour heron island lantern ledger meadow mirror "
    "mountain orchard otter pebble pine raven river rudder sparrow spire stone thistle tide tower valley willow window"
).split()
TASKS = (
    "api auth billing cart catalog export gateway importer ledger mailer metrics notify queue search session sync"
).split()
FIRMS = "Freight Group Holdings Labs Lines Logistics Partners Shipping Systems Works".split()
GOODS = (
    "barley cocoa copper cotton diesel fertiliser flour furniture glass gravel salt squid steel timber tyres wool"
).split()
STATES = "bulk crushed dried frozen liquid raw recycled refined scrap surplus".split()
ANIMALS = "bat beetle finch frog gecko lizard moth newt shrew snail toad vole warbler".split()
MANNERS = "cubism engraving impressionism mannerism minimalism naturalism realism romanticism tachism".split()
ILLS = "anaemia ataxia colitis dermatitis fever fibrosis gout myopathy neuralgia palsy".split()


def word(rng: Random, syllables: int = 2) -> str:
    """A pronounceable capitalised word."""
    parts = [rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(syllables)]
    return "".join(parts).capitalize()


def town(rng: Random) -> str:
    """A town: one word, or two."""
    base = word(rng, 1) + rng.choice(TOWN_ENDS)
    return rng.choice((base, base, f"{rng.choice(('Port', 'New', 'Upper', 'San'))} {base}"))


def title(rng: Random) -> str:
    """The title of a work, with common words in it."""
    thing, other = rng.choice(THINGS), rng.choice(THINGS)
    shapes = (
        f"The {rng.choice(COLOURS).title()} {thing.title()}",
        f"{thing.title()} with {other.title()}",
        f"Portrait of {rng.choice(FIRST)} {word(rng, 1)}",
        f"{word(rng)} at Dusk",
    )
    return rng.choice(shapes)


def of_town(rng: Random, *heads: str) -> str:
    """An institution that may carry a town's name inside its own."""
    place = town(rng)
    return rng.choice((f"{rng.choice(heads)} of {place}", f"{word(rng)} {rng.choice(heads)}"))


MAKERS: dict[str, Callable[[Random], str]] = {
    "person": lambda rng: f"{rng.choice(FIRST)} {word(rng, rng.choice((1, 2)))}",
    "service": lambda rng: "-".join((rng.choice(THINGS), *rng.sample(TASKS, rng.choice((1, 1, 2))))),
    "team": lambda rng: rng.choice((f"Team {word(rng)}", f"the {word(rng)} crew", f"the {rng.choice(THINGS)} squad")),
    "vendor": lambda rng: rng.choice((f"{word(rng)} {rng.choice(FIRMS)}", f"{word(rng, 1)} & {word(rng, 1)}")),
    "region": lambda rng: f"{rng.choice(('eu', 'us', 'ap', 'sa'))}-{word(rng, 1).lower()}-{rng.randint(1, 9)}",
    "city": town,
    "port": town,
    "country": lambda rng: rng.choice((word(rng, 1) + "ia", word(rng, 1) + "land", f"Republic of {word(rng)}")),
    "vessel": lambda rng: f"{rng.choice([*COLOURS, word(rng)]).title()} {rng.choice(THINGS).title()}",
    "company": lambda rng: f"{word(rng)} {rng.choice(FIRMS)}",
    "yard": lambda rng: of_town(rng, "Yard", "Slipways"),
    "cargo": lambda rng: f"{rng.choice(STATES)} {rng.choice(GOODS)}",
    "work": title,
    "museum": lambda rng: of_town(rng, "Museum", "Gallery"),
    "school": lambda rng: of_town(rng, "Academy", "College"),
    "style": lambda rng: f"{word(rng).lower()} {rng.choice(MANNERS)}",
    "species": lambda rng: rng.choice(
        (f"{word(rng)} {word(rng).lower()}us", f"the {rng.choice(COLOURS)}-{rng.choice(THINGS)} {rng.choice(ANIMALS)}")
    ),
    "genus": lambda rng: word(rng) + rng.choice(("ella", "opsis", "ina")),
    "institute": lambda rng: of_town(rng, "Institute", "University"),
    "habitat": lambda rng: f"{word(rng)} {rng.choice(('Marsh', 'Plateau', 'Delta', 'Gorge', 'Heath'))}",
    "compound": lambda rng: word(rng).lower() + rng.choice(("ine", "ol", "oxin")),
    "disease": lambda rng: f"{rng.choice((word(rng).lower(), rng.choice(COLOURS)))} {rng.choice(ILLS)}",
}


def pool(kind: str, size: int, rng: Random, taken: set[str]) -> list[str]:
    """`size` new names of one kind, none of them in `taken`, which grows. Small pools of parts are widened."""
    names: list[str] = []
    while len(names) < size:
        name = MAKERS[kind](rng)
        for _ in range(20):
            if name.casefold() not in taken:
                break
            name = MAKERS[kind](rng)
        else:
            name = f"{name} {word(rng)}"
        if name.casefold() not in taken:
            taken.add(name.casefold())
            names.append(name)
    return names
