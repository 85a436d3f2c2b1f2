"""English verbs by form: what a word's base is, and which form of it the word is."""

from typing import Literal, NamedTuple

Form = Literal["base", "s", "past", "participle", "ed", "ing"]


class VerbForm(NamedTuple):
    """`ed` stands for a regular form that may be past tense or participle."""

    base: str
    form: Form


_REGULAR = """
abandon abolish accept access accompany achieve acquire act add adjust administer admit adopt adore advise
agree aim alert allow announce annul answer appeal appear apply appoint approve archive arrange arrive ask
assemble assign assist associate attach attend audit author authorise authorize automate award back backup
balance ban baptise bar base bathe beg belong bid bill bind blend block board boil book borrow bother bounce
brand brew broadcast broaden browse buffer bump burn cache calculate calibrate call camp cancel cap capture
care carry cater cause cease celebrate center centre certify chain chair challenge change chant charge chase
chat check chop cite claim clamp classify clean clear climb close coach coat code collapse collect combine
command comment commit commute compare compensate compete compile complain complete comply compose compress
compute concentrate concern conclude conduct confirm confuse connect conserve consider consist construct
consume contact contain contest continue contrast contribute control converge convert cook coordinate copy
correct cost count countersign cover craft crash crawl create credit criticise cross curate cure cycle dance
date deal debate debug decay decide declare decline decommission decorate dedicate dedupe default defend
define delay delegate delete delight deliver demand demonstrate deny depart depend deploy deprecate derive
describe deserve design despise detach detect determine detest develop devote diagnose die differ dine direct
disable disallow disband discharge disclose discontinue discount discourage discover discuss dislike dismiss
dispatch display dissolve distribute distrust divide dock document dominate donate dose double doubt downgrade
download draft drag drain dress drip drop dry dump earn echo edit educate elapse elect elevate email embed
embrace emerge emit emphasise employ empty enable enact enclose encode encounter encourage encrypt end endorse
enforce engage enjoy enlarge enlist enrich enrol enroll ensure entail enter equal equate equip erase err
escalate establish estimate evaluate evict evolve examine exceed exclude execute exempt exist exit expand
expect expire explain explode exploit explore export expose extend extract face fail favor favour fax feature
feel fertilise fetch file fill film filter finalise finalize finance finish fire fit fix flag flow flush focus
fold follow force forecast form format formulate forward foster found frame frequent fuel function fund garden
gather gaze generate govern grade graduate grant greet grill group guarantee guard guess guide halt hand
handcraft handle hang happen harm harvest hash hate haul head heat help hike hire hop host house hover hunt
ice identify ignore illustrate immigrate impact implement imply import impose improve include increase index
infect inflate influence inform inhabit inherit initiate inject innovate insert inspect inspire install
instruct insure integrate intend intercept interview introduce invade invalidate invent invest invite invoice
involve isolate issue iterate join judge jump kick kill knit label lack lag land lapse last latch launch learn
lease lecture license lift like limit line link list listen litigate live load loan loathe locate lock lodge
log loop love lower mail maintain manage manufacture mark market marry match matter maximise measure mend
mention mentor merge message migrate milk mill minimise mirror misplace mix mock model moderate modify monitor
mount move mow multiply name narrate navigate need neglect negotiate nest nominate notify nullify number nurse
oblige observe obsolete obtain occupy occur offer omit open operate oppose orbit order organise organize
originate outline outnumber overlap overlook oversee own pack package page paint pair panic park parse
participate partner pass paste patch patrol pause pave penalise perform permit persist phase phone pick pickle
pilot pin pitch place plan plant plate play plead plough plunge poach point polish poll populate portray
possess post postpone pour power practice practise preach precede predict prefer preorder prepare preserve
preside press prevent preview price print prioritise privilege process procure produce profit program prohibit
project prolong promise promote prompt propose prosecute protect provide provision prune publish pull pump
purchase purge pursue push puzzle qualify quarantine query queue quote race rain raise rank rate reach react
reassign reassure rebase reboot rebrand recall receive reclaim recommend reconcile record recover recruit
rectify recycle redirect reduce refer referee refine reflect reform refresh refuel refund refurbish refuse
register regulate rehearse reinforce reissue reject relate relax relay release relocate rely remain remark
remedy remind remove rename render renew renovate rent reopen repair repeal repeat replace replicate reply
report represent request require reschedule rescind rescue research resemble reserve reset reshape reside
resign resolve respond rest restart restore restrict resume retain retire retract retrain retreat retry return
reunite reveal reverse review revise revoke revolve reward rinse roam roast rob roll rotate round route row
rule sack sail sample sanction save scale scan scatter schedule scold score scrap scrape screen seal search
season seat secure seed select sense sentence separate sequence serve service settle shape share shelter
shelve shift shine ship shorten shout show shut shutter sign signal simmer sit sketch skip sleep slice slide
smoke smooth snapshot soak solve sort source span spark specialise specialize spell spill spin sponsor spray
squeeze stack staff stage stain stamp start starve state station stay steam steer stem step stitch stock stop
store stream strengthen stretch strip structure study style submit subscribe succeed sue suffer suffice
suggest suit summarise sunset supersede supervise supply support surround survey survive suspect suspend
sustain swallow switch symbolise sync tackle tag talk target taste tax tend term terminate test thank thicken
tighten tilt time toast tolerate top toss total touch tour tow trace track trade train transfer transform
translate transport trap travel treat trickle trigger trim trust tune turn tutor twist type unify unite unload
unlock unveil update upgrade upload urge use utilise utilize vaccinate validate value vanish vary vent verify
view visit visualise void volunteer vote wait walk want warm warn warrant wash waste watch water weaken weigh
welcome weld whisk widen wind wipe wire wish witness work worry worship wound wrap yield zip zone
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
    "access act aim alert answer archive award back backup balance ban bar base bid bill block board book "
    "brand break broadcast buffer build bump cache call cap catch cause change charge check coach code "
    "command contact control cook copy cost cover crash credit cure cut cycle date deal default delegate "
    "demand deploy design discount display dock document download draft drain draw dress drink drive drop "
    "dump email end estimate export face fall fax feature feed fight file film filter finance find fire fix "
    "flag fly fold force frame fuel fund group guarantee guard guide halt harvest head heat help hike hire "
    "hit hold host house import increase index interview invoice issue judge jump kick label lack land launch "
    "lead lease license lift limit link list load lock log loop love mail mark market match matter measure "
    "meet merge milk mill mix monitor mount move name need number offer order pack package paint park partner "
    "pass paste pause permit phase phone pick pilot pin place plan plant plate play point poll post power "
    "practice press price print process produce program promise pull pump purchase push query queue race rain "
    "raise rank rate read record refund release rent repair reply report request research reserve rest "
    "restart return reverse review reward roast roll round route rule run sail sample save scale scan "
    "schedule score scrap screen search seat seed service set share shift ship show sign sleep slice smoke "
    "snapshot sort source span sponsor stack staff stage stamp start state station stay steer stem stitch "
    "stock stop store stream stretch structure study style suit supply support switch sync tag talk target "
    "tax test time total touch tour trace track trade train transfer transport travel trust tune turn tutor "
    "type update upgrade upload use value view visit volunteer vote wait walk want wash waste watch water "
    "wish witness work wrap yield zone".split()
)
