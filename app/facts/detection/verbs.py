"""English verbs by form: what a word's base is, and which form of it the word is."""

from typing import Literal, NamedTuple

Form = Literal["base", "s", "past", "participle", "ed", "ing"]


class VerbForm(NamedTuple):
    """`ed` stands for a regular form that may be past tense or participle."""

    base: str
    form: Form


_REGULAR = """
abandon abolish accept access accompany achieve acquire act add adjust administer admit adopt adore advise agree aim
alert allow announce annul answer appear apply appoint approve archive arrange arrive ask assemble assign assist
associate attach attend audit author authorise authorize automate award back backup balance ban bar base bill block
board boil book borrow bother brand broadcast browse buffer bump burn cache call cancel cap capture care carry cater
cause cease chair change charge chase check clean clear climb close coach code collect combine command commute compete
compile complete compose conduct confirm connect consider consist construct consume contact contain continue contribute
control convert cook copy cost countersign cover crash craft create credit cure cycle date deal decide declare decline
decommission dedicate default delegate delete deliver demand deny depart depend deploy deprecate describe design
despise detest determine develop diagnose die direct disable disallow disband disclose discontinue discount discover
discuss dislike dismiss dispatch display dissolve distribute distrust divide document dock donate double download draft
drain dress drop dry dump earn edit educate elect email emit employ empty enable encode encrypt end endorse enforce
engage enjoy enrol enroll ensure enter equal equip escalate establish estimate evaluate examine exceed exclude execute
exempt exist expand expect expire explain export expose extend face fail favor favour fax feature fetch file fill
film filter finance finish fire fit fix flag flush fold follow force forward found frame fuel fund gather generate
govern grant greet group guarantee guard guide halt handle happen harvest hate haul head heat help hike hire host house
identify ignore implement import improve include increase index inform inherit inhabit insert inspect install instruct
insure integrate intend interview introduce invalidate invent invest invite invoice involve isolate issue join judge jump
kick kill label lack land last latch launch learn lease license lift like limit link list listen live load loathe
locate lock log loop love lower mail maintain manage manufacture mark market marry match matter measure mention merge
migrate milk mill mix modify monitor mount move multiply name need nominate notify nullify number observe obsolete
obtain occupy occur offer omit open operate oppose order organise organize originate oversee own pack package paint park
participate partner pass paste pause perform permit phase phone pick pilot pin place plan plant plate play plead point
poll populate post postpone power practise practice prefer prepare preserve preside press prevent price print process
produce program prohibit promise promote propose protect provide provision prune publish pull pump purchase push qualify
quarantine query queue race rain raise rank rate reach react receive recommend reconcile record recover recycle redirect
reduce refer referee reflect refresh refund refuse register regulate rehearse reject relate relax release relocate rely
remain remind remove rename renew rent repair repeal replace replicate reply report represent request require reschedule
rescind research reserve reset reside resign resolve respond rest restart restore restrict resume retain retire retract
retry return reverse review revoke reward roast roll rotate round route rule sail sample save scale scan schedule score
scrap screen search seat secure seed select separate serve service share shelve shift ship shorten show shut sign
simmer sit skip sleep slice smoke snapshot solve sort source span spark specialise specialize sponsor staff stack stage
stamp start state station stay steer stem stitch stock stop store stream stretch structure study style submit subscribe
succeed sue suffer suggest suit sunset supersede supervise supply support suspend switch sync tag talk target tax taste
terminate test thank time tolerate total touch tour trace track trade train transfer transform translate transport
travel treat trigger trim trust tune turn tutor type unlock update upgrade upload urge use utilise utilize validate value
vary vent verify view visit void volunteer vote wait walk want warm warn wash waste watch water weigh welcome wipe wire
wish witness work worry wrap yield zone downgrade reassign lecture shutter belong cite mirror reboot step reassure appeal baptise bathe beg bid bind blend
bounce brew broaden calculate calibrate camp celebrate centre center certify chain challenge chant chat chop cite
claim clamp classify coat collapse comment commit compare compensate complain comply compress compute concern
concentrate conclude confuse conserve contest contrast converge coordinate correct count crawl criticise cross cure
curate dance debate debug decay decorate dedupe defend define delay delight demonstrate derive deserve detach detect
devote differ dine discharge discourage dominate dose doubt drag drip echo elapse elevate embed embrace emerge
emphasise enact enclose encounter encourage enlarge enlist enrich entail equate erase err evict evolve exit
exploit explode explore extract feel fertilise finalise finalize flow focus forecast form format formulate foster
frequent function garden gather gaze grade graduate grill guess hand handcraft hang harm hash hop hover hunt ice
illustrate immigrate impact imply impose infect inflate influence initiate inject innovate inspire intercept invade
iterate knit lapse lag lease lecture line litigate lodge loan lodge maximise mend mentor message minimise mirror
misplace mock model moderate mow narrate navigate neglect negotiate nest nurse oblige orbit outline outnumber
overlap overlook page pair panic parse patch patrol pave penalise persist pickle pitch plough plunge poach polish
portray possess pour practise preach precede predict preorder preview prioritise privilege procure profit project
prolong prompt prosecute provision purge pursue puzzle quote rebrand rebase recall reclaim recruit rectify refine
reform refuel refurbish register reinforce reissue relay remark remedy render renovate reopen repeat rescue resemble
reshape retrain retreat reunite reveal revise revolve rinse roam rob rotate row sack sanction scatter scold scrape
seal season sense sentence sequence settle shape shelter shine shout sign signal sketch slide smooth soak span spell
spill spin sponsor spray squeeze stain stamp starve steam stretch strip strengthen suffice summarise surround survey
survive suspect sustain swallow symbolise tackle tend term thicken tighten tilt toast top toss tow trap trickle twist
unify unite unload unveil urge vaccinate vanish visualise warrant weaken weld whisk widen wind worship wound zip
"""

_IRREGULAR = """
arise arose arisen|be was been|bear bore born|beat beat beaten|become became become|begin began begun|bend bent bent|
bind bound bound|bite bit bitten|blow blew blown|break broke broken|bring brought brought|build built built|
buy bought bought|catch caught caught|choose chose chosen|come came come|cut cut cut|deal dealt dealt|dig dug dug|
draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed fed|feel felt felt|
fight fought fought|find found found|fly flew flown|forbid forbade forbidden|forget forgot forgotten|
freeze froze frozen|get got got|give gave given|go went gone|grow grew grown|hang hung hung|hear heard heard|
hide hid hidden|hit hit hit|hold held held|keep kept kept|know knew known|lay laid laid|lead led led|leave left left|
lend lent lent|let let let|lie lay lain|light lit lit|lose lost lost|make made made|mean meant meant|meet met met|
overturn overturned overturned|override overrode overridden|oversee oversaw overseen|pay paid paid|put put put|
quit quit quit|read read read|rebuild rebuilt rebuilt|ride rode ridden|ring rang rung|rise rose risen|run ran run|
say said said|see saw seen|seek sought sought|sell sold sold|send sent sent|set set set|shake shook shaken|
shine shone shone|shoot shot shot|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat sat|sleep slept slept|
speak spoke spoken|spend spent spent|split split split|spread spread spread|stand stood stood|steal stole stolen|
stick stuck stuck|strike struck struck|swear swore sworn|sweep swept swept|swim swam swum|take took taken|
teach taught taught|tell told told|think thought thought|throw threw thrown|undo undid undone|
understand understood understood|wake woke woken|wear wore worn|win won won|wind wound wound|
withdraw withdrew withdrawn|write wrote written|rewrite rewrote rewritten|shut shut shut|cast cast cast|
grind ground ground|hurt hurt hurt|weave wove woven|sew sewed sewn|outsource outsourced outsourced
"""

_VOWELS = frozenset("aeiou")
_DOUBLING = frozenset(
    "ban bar plan ship stop drop skip trim scan scrap tag log cap fit admit commit permit prefer refer cancel "
    "transfer submit program label fuel enrol control pin chat mop swim run set get put cut let sit hit win begin "
    "forbid quit shut split bid dig omit flag travel model".split()
)


def _third_person(base: str) -> str:
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _with_suffix(base: str, suffix: str) -> str:
    if suffix == "ed" and base.endswith("e"):
        return base + "d"
    if suffix == "ed" and base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "ied"
    if suffix == "ing" and base.endswith("ie"):
        return base[:-2] + "ying"
    if suffix == "ing" and base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + (base[-1] if base in _DOUBLING else "") + suffix


def _inflections() -> dict[str, VerbForm]:
    forms: dict[str, VerbForm] = {}
    for base in _REGULAR.split():
        forms[_with_suffix(base, "ed")] = VerbForm(base, "ed")
    for entry in _IRREGULAR.replace("\n", "").split("|"):
        base, past, participle = entry.split()
        forms[past] = VerbForm(base, "past" if past != participle else "ed")
        forms.setdefault(participle, VerbForm(base, "participle"))
    irregular = [entry.split()[0] for entry in _IRREGULAR.replace("\n", "").split("|")]
    for base in [*_REGULAR.split(), *irregular]:
        forms.setdefault(_with_suffix(base, "ing"), VerbForm(base, "ing"))
        forms[_third_person(base)] = VerbForm(base, "s")
        forms[base] = VerbForm(base, "base")
    # The past of "find" is far rarer in statements of fact than the verb "to found".
    forms["found"] = VerbForm("found", "base")
    forms["born"] = VerbForm("bear", "participle")
    forms["cancelled"] = forms["canceled"] = VerbForm("cancel", "ed")
    forms["travelling"] = forms["traveling"] = VerbForm("travel", "ing")
    forms["ground"] = VerbForm("ground", "base")
    return forms


VERB_FORMS = _inflections()

#: Bases that are as often nouns: "tests", "orders" and "runs" open a noun phrase as readily as a predicate.
NOUN_LIKE = frozenset(
    "access act aim alert answer archive award back backup balance ban bar base bill block board book brand broadcast "
    "buffer bump cache call cap cause change charge check coach code command contact control cook copy cost cover crash "
    "credit cure cycle date deal default delegate demand deploy design discount display document dock download draft "
    "drain dress drink drop dump email end estimate export face fax feature file film filter finance fire fix flag "
    "fold force frame fuel fund group guarantee guard guide halt harvest head heat help hike hire host house import "
    "increase index interview invoice issue judge jump kick label lack land launch lease license lift limit link list "
    "load lock log loop love mail mark market match matter measure merge milk mill mix monitor mount move name need "
    "number offer order pack package paint park partner pass paste pause permit phase phone pick pilot pin place plan "
    "plant plate play point poll post power practice press price print process produce program promise pull pump "
    "purchase push query queue race rain raise rank rate record refund release rent repair reply report request "
    "research reserve rest restart return reverse review reward roast roll round route rule run sail sample save scale "
    "scan schedule score scrap screen search seat seed service set share shift ship show sign sleep slice smoke "
    "snapshot sort source span sponsor staff stack stage stamp start state station stay steer stem stitch stock stop "
    "store stream stretch structure study style supply support suit switch sync tag talk target tax test time total "
    "touch tour trace track trade train transfer transport travel trust tune turn tutor type update upgrade upload use "
    "value view visit volunteer vote wait walk want wash waste watch water wish witness work wrap yield zone cut hit "
    "read build lead meet hold fall find drive break feed fight fly catch bid draw".split()
)
