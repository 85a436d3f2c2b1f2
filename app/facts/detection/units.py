"""Units, number words and calendar words, and the common measure that each is reduced to."""

#: unit as written -> (dimension, factor to the dimension's own measure). Units of one dimension are comparable
#: amounts; a unit that has no fixed ratio to the others (degrees Celsius, US dollars) is a dimension by itself.
UNITS: dict[str, tuple[str, float]] = {}


def _units(dimension: str, table: str) -> dict[str, tuple[str, float]]:
    found = {}
    for row in table.split(","):
        *names, factor = row.split()
        for name in names:
            found[name] = (dimension, float(factor))
    return found


UNITS |= _units(
    "time",
    "ns nanosecond nanoseconds 1e-9,us µs μs microsecond microseconds 1e-6,ms msec millisecond milliseconds 1e-3,"
    "s sec secs second seconds 1,min mins minute minutes 60,h hr hrs hour hours 3600,d day days 86400,"
    "wk week weeks 604800,fortnight fortnights 1209600",
)
UNITS |= _units("months", "month months 1,quarter quarters 3,year years yr yrs 12,decade decades 120")
UNITS |= _units(
    "length",
    "mm millimetre millimetres millimeter millimeters 1e-3,cm centimetre centimetres centimeter centimeters 1e-2,"
    "m metre metres meter meters 1,km kilometre kilometres kilometer kilometers 1e3,inch inches 0.0254,"
    "ft foot feet 0.3048,yd yard yards 0.9144,mi mile miles 1609.344",
)
UNITS |= _units(
    "mass",
    "mcg µg μg microgram micrograms 1e-6,mg milligram milligrams 1e-3,g gram grams gramme grammes 1,"
    "kg kilo kilos kilogram kilograms 1e3,t tonne tonnes ton tons 1e6,lb lbs pound pounds 453.59237,"
    "oz ounce ounces 28.349523125",
)
UNITS |= _units(
    "volume",
    "ml millilitre millilitres milliliter milliliters 1,cl centilitre centilitres 10,dl decilitre decilitres 100,"
    "l litre litres liter liters 1000,tsp teaspoon teaspoons 4.92892,tbsp tablespoon tablespoons 14.78676,"
    "cup cups 236.588,pint pints 473.176,gallon gallons 3785.41",
)
UNITS |= _units(
    "data",
    "byte bytes 1,kb kilobyte kilobytes 1e3,mb megabyte megabytes 1e6,gb gigabyte gigabytes 1e9,"
    "tb terabyte terabytes 1e12,pb petabyte petabytes 1e15,kib 1024,mib 1048576,gib 1073741824,tib 1099511627776",
)
UNITS |= _units("power", "w watt watts 1,kw kilowatt kilowatts 1e3,mw megawatt megawatts 1e6")
UNITS |= _units("energy", "wh 1,kwh 1e3,mwh 1e6")
UNITS |= _units("voltage", "v volt volts 1,mv millivolt millivolts 1e-3,kv kilovolt kilovolts 1e3")
UNITS |= _units("current", "ma milliamp milliamps 1e-3,amp amps ampere amperes 1")
UNITS |= _units("frequency", "hz hertz 1,khz 1e3,mhz 1e6,ghz 1e9")
UNITS |= _units("bitrate", "bps 1,kbps 1e3,mbps 1e6,gbps 1e9")
for _alone, _names in {
    "celsius": "°c celsius",
    "fahrenheit": "°f fahrenheit",
    "degree": "° degree degrees",
    "percent": "% percent pct",
    "usd": "$ usd dollar dollars",
    "eur": "€ eur euro euros",
    "gbp": "£ gbp",
    "jpy": "¥ jpy yen",
    "chf": "chf franc francs",
    "cent": "cent cents",
    "px": "px pixel pixels",
    "rpm": "rpm",
    "kmh": "km/h kph kmh",
    "mph": "mph",
    "people": "people persons person",
}.items():
    UNITS |= _units(_alone, f"{_names} 1")

MULTIPLIERS = {
    "k": 1e3,
    "bn": 1e9,
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "dozen": 12.0,
}

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
NUMBER_WORDS = {word: number for number, word in enumerate(_SMALL.split())}
TENS = {
    word: 10 * number
    for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
ORDINAL_WORDS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}
TIMES_WORDS = {"once": 1, "twice": 2, "thrice": 3}

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sep sept,"
            "october oct,november nov,december dec"
        ).split(","),
        start=1,
    )
    for name in names.split()
}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday mondays,tuesday tuesdays tues,wednesday wednesdays,thursday thursdays thurs,friday fridays,"
            "saturday saturdays,sunday sundays"
        ).split(","),
        start=1,
    )
    for name in names.split()
} | {"mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5}
FREQUENCIES = {
    "hourly": "hour",
    "daily": "day",
    "nightly": "night",
    "weekly": "week",
    "biweekly": "fortnight",
    "fortnightly": "fortnight",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annually": "year",
}
PERIODS = frozenset({"hour", "day", "night", "week", "fortnight", "month", "quarter", "year", "minute", "second"})
