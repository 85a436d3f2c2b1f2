"""Domains of the chain benchmark: entity types, and relations with their wordings in facts and in questions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation: `{s}` is its subject, `{o}` its object.

    `facts` are sentence shapes that state it, `phrases` name the object inside a longer question,
    `asks` are whole questions for the object. A `mutual` relation holds both ways (marriage).
    """

    source: str
    target: str
    facts: tuple[str, ...]
    phrases: tuple[str, ...]
    asks: tuple[str, ...]
    mutual: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain: pool sizes per 100 subjects, relations, remarks that answer nothing, sentence tails."""

    name: str
    sizes: dict[str, int]
    relations: tuple[Relation, ...]
    remarks: tuple[str, ...]
    tails: tuple[str, ...]


WIKI = Domain(
    name="wiki",
    sizes={"service": 60, "team": 24, "person": 70, "vendor": 20, "region": 10, "city": 30, "country": 14},
    relations=(
        Relation(
            "service",
            "team",
            (
                "{s} is owned by {o}",
                "{o} took over {s} from the contractors",
                "Ownership of {s} sits with {o}",
                "We moved {s} into the care of {o}",
                "{o} maintains {s}",
            ),
            ("the team that owns {x}", "the group responsible for {x}", "the owner of {x}", "{x}'s owning team"),
            ("Which team looks after {x}?", "Who owns {x}?"),
        ),
        Relation(
            "team",
            "person",
            (
                "{o} leads {s}",
                "{s} reports to {o}",
                "The lead of {s} is {o}",
                "{o} was made head of {s}",
                "{s} is managed by {o}",
            ),
            ("the manager of {x}", "the person who leads {x}", "the head of {x}", "{x}'s lead"),
            ("Who is in charge of {x}?", "Who runs {x}?", "Who manages {x}?"),
        ),
        Relation(
            "service",
            "vendor",
            (
                "{s} buys its hosting from {o}",
                "The contract behind {s} is with {o}",
                "{o} is the supplier for {s}",
                "For {s} we pay {o} as the vendor",
            ),
            ("the vendor behind {x}", "the company that supplies {x}", "{x}'s supplier"),
            ("Which vendor do we use for {x}?", "Which supplier is behind {x}?"),
        ),
        Relation(
            "service",
            "region",
            (
                "{s} runs in {o}",
                "{s} is deployed to {o} only",
                "The production cluster of {s} lives in {o}",
                "We host {s} in the {o} region",
            ),
            ("the region where {x} is deployed", "the region that hosts {x}", "the region {x} runs in"),
            ("In which region does {x} run?", "Where is {x} deployed?"),
        ),
        Relation(
            "region",
            "city",
            (
                "The {s} region is a data centre in {o}",
                "{s} is housed in a hall outside {o}",
                "The machines of {s} stand in {o}",
            ),
            ("the city that houses {x}", "the city where the data centre of {x} stands"),
            ("In which city are the machines of {x}?", "Which city is the data centre of {x} in?"),
        ),
        Relation(
            "vendor",
            "city",
            (
                "{s} has its head office in {o}",
                "{s}, headquartered in {o}, renewed its contract",
                "The main office of {s} is in {o}",
                "{s} is based in {o}",
            ),
            ("the city where {x} is headquartered", "the city {x} is based in", "the home town of {x}"),
            ("Where is {x} headquartered?", "In which city is the main office of {x}?"),
        ),
        Relation(
            "vendor",
            "person",
            ("Our account manager at {s} is {o}", "{o} is our contact at {s}", "At {s}, ask for {o}"),
            ("our contact at {x}", "the account manager at {x}"),
            ("Who is our account manager at {x}?", "Whom do we contact at {x}?"),
        ),
        Relation(
            "person",
            "person",
            ("{o} is the deputy of {s}", "When {s} is away, {o} stands in as deputy", "{s} named {o} as deputy"),
            ("the deputy of {x}", "the person who stands in for {x}"),
            ("Who is the deputy of {x}?", "Who stands in for {x}?"),
        ),
        Relation(
            "person",
            "city",
            ("{s} works from the {o} office", "{s} moved to {o} last year", "{s} lives in {o}"),
            ("the city where {x} lives", "the town {x} works from"),
            ("Which city does {x} live in?", "Where does {x} work from?"),
        ),
        Relation(
            "city",
            "country",
            ("{s} is a city in {o}", "{s} lies in {o}", "{s} is in the north of {o}"),
            ("the country {x} is in", "the country of {x}"),
            ("Which country is {x} in?", "To which country does {x} belong?"),
        ),
    ),
    remarks=(
        "{person} wrote the retrospective of the March outage",
        "{service} returned 502 for nine minutes on Tuesday",
        "{team} skipped its planning session",
        "The invoice from {vendor} arrived late",
        "{person} prefers written updates",
        "{service} logs are kept for thirty days",
        "{city} office is closed on Fridays",
        "{service} and {service} share a dashboard",
        "{person} and {person} paired on the migration of {service}",
    ),
    tails=("",) * 8 + (", as agreed in the March review", " (see the wiki)", " since the reorganisation", ", for now"),
)

FLEET = Domain(
    name="fleet",
    sizes={"vessel": 60, "person": 60, "company": 22, "port": 34, "country": 14, "cargo": 20, "yard": 14},
    relations=(
        Relation(
            "vessel",
            "person",
            (
                "Captain {o} commands the {s}",
                "The {s} sails under {o}",
                "{o} is master of the {s}",
                "Since June the {s} has been commanded by {o}",
            ),
            ("the captain of the {x}", "the master who commands the {x}", "the {x}'s captain"),
            ("Who commands the {x}?", "Who is the captain of the {x}?"),
        ),
        Relation(
            "vessel",
            "company",
            ("The {s} belongs to {o}", "{o} operates the {s}", "The {s} was bought by {o}", "The {s} sails for {o}"),
            ("the company that operates the {x}", "the operator of the {x}", "the shipping line owning the {x}"),
            ("Which company operates the {x}?", "Which line does the {x} sail for?"),
        ),
        Relation(
            "vessel",
            "yard",
            ("The {s} was built at {o}", "{o} built the {s}", "The hull of the {s} was laid down by {o}"),
            ("the shipyard that built the {x}", "the yard where the {x} was built", "the builder of the {x}"),
            ("Which shipyard built the {x}?", "Where was the {x} built?"),
        ),
        Relation(
            "vessel",
            "cargo",
            ("The {s} carries {o}", "The holds of the {s} are full of {o}", "The {s} was loaded with {o}"),
            ("the cargo of the {x}", "the goods the {x} carries"),
            ("What does the {x} carry?", "What is the cargo of the {x}?"),
        ),
        Relation(
            "vessel",
            "port",
            ("The home port of the {s} is {o}", "The {s} is registered at {o}", "The {s} calls {o} home"),
            ("the home port of the {x}", "the port where the {x} is registered"),
            ("What is the home port of the {x}?", "At which port is the {x} registered?"),
        ),
        Relation(
            "yard",
            "port",
            ("{s} lies on the waterfront of {o}", "{s} is a shipyard in {o}", "The docks of {s} are in {o}"),
            ("the port where {x} is located", "the town of {x}"),
            ("In which port is {x}?", "Where are the docks of {x}?"),
        ),
        Relation(
            "company",
            "person",
            ("{o} chairs the board of {s}", "{s} is chaired by {o}", "The chair of {s} is {o}"),
            ("the chair of {x}", "the person chairing {x}"),
            ("Who chairs {x}?", "Who is the chair of {x}?"),
        ),
        Relation(
            "company",
            "port",
            ("{s} has its offices in {o}", "The seat of {s} is {o}", "{s} is run from {o}"),
            ("the seat of {x}", "the town where {x} has its offices"),
            ("Where does {x} have its offices?", "What is the seat of {x}?"),
        ),
        Relation(
            "person",
            "person",
            ("{s} is married to {o}", "{o} is the wife of {s}", "{s} and {o} married in spring"),
            ("the spouse of {x}", "the woman {x} married", "{x}'s wife"),
            ("Who is {x} married to?", "Who is the spouse of {x}?"),
            mutual=True,
        ),
        Relation(
            "person",
            "port",
            ("{s} grew up in {o}", "{s} comes from {o}", "{s} was born in {o}"),
            ("the birthplace of {x}", "the town {x} comes from", "the place where {x} was born"),
            ("Where was {x} born?", "Which town does {x} come from?"),
        ),
        Relation(
            "port",
            "country",
            ("{s} is a port in {o}", "{s} belongs to {o}", "The harbour of {s} is on the coast of {o}"),
            ("the country of {x}", "the country where {x} lies"),
            ("In which country is {x}?", "What country does {x} lie in?"),
        ),
        Relation(
            "country",
            "person",
            ("The harbour minister of {s} is {o}", "{o} is minister for harbours in {s}"),
            ("the harbour minister of {x}", "{x}'s minister for harbours"),
            ("Who is the minister for harbours of {x}?", "Who is harbour minister in {x}?"),
        ),
    ),
    remarks=(
        "The {vessel} waited two days outside {port}",
        "{person} filed the noon report late",
        "Fog closed {port} on Monday",
        "{company} ordered new paint",
        "The {vessel} and the {vessel} passed off {port}",
        "{cargo} prices fell in {port}",
        "{person} met {person} aboard the {vessel}",
    ),
    tails=("",) * 8 + (", says the harbour log", " since last autumn", ", according to the agent", " at present"),
)
