"""Functional vocabulary of English: the closed classes that the rules are stated in."""

ARTICLES = frozenset({"the", "a", "an"})
POSSESSIVES = frozenset("my our your his her its their".split())
#: Words that change neither what is said nor whether it holds.
FILLERS = frozenset(
    "now currently presently nowadays actually officially already always just simply please today any ever some "
    "really very entirely completely altogether fully meanwhile instead henceforth finally".split()
)
ADDITIVE = frozenset("also too additionally furthermore moreover besides another likewise plus".split())
CONTINUING = frozenset({"still"})
NEGATIONS = frozenset({"not", "never", "no", "none", "neither", "nor", "without", "nobody", "nothing", "nowhere"})
MODALS = frozenset("can could may might must shall should will would".split())
PERMISSIONS = frozenset({"can", "could", "may", "might"})
BE = frozenset("be am is are was were been being".split())
PAST_BE = frozenset({"was", "were"})
HAVE = frozenset("have has had having".split())
DO = frozenset("do does did doing done".split())
PRONOUNS = frozenset("i you he she it we they who that this these those there everybody anybody".split())
EVERYBODY = frozenset("everybody everyone anybody anyone somebody someone nobody".split())
PREPOSITIONS = frozenset(
    "about above across after against along among around as at before behind below beneath beside between beyond by "
    "down during for from in inside into near of off on onto out outside over past per since through throughout till "
    "to toward towards under until up upon via with within than".split()
)
#: A phrase with one of these says where or when a state holds rather than what the state is.
SCOPE_PREPOSITIONS = frozenset("for in on under during per within across among since throughout over".split())
SCOPE_WORDS = frozenset(
    "production prod staging development dev test testing qa sandbox canary preview ci winter summer spring autumn "
    "weekends weekdays weekend holidays holiday emergencies".split()
)
CONDITIONS = frozenset("if when whenever while once unless until because although though whereas before after".split())
EXCEPTIONS = frozenset({"except", "excepting", "excluding", "unless", "only", "barring", "solely", "exclusively"})
EXCEPTION_PHRASES = tuple("other than,apart from,aside from,but not,with the exception of,save for,but only".split(","))

RELATIVES = frozenset("who which that where whom whose".split())
HYPOTHETICAL = frozenset(
    "might would could should may maybe perhaps possibly if whether plan plans planned planning propose proposes "
    "proposed proposing consider considers considered considering intend intends hope hopes suggest suggests suggested "
    "wants want discuss discussed discussing will shall going thinking wish evaluate evaluating".split()
)
SUPPOSING = frozenset({"maybe", "perhaps", "possibly", "if", "whether"})
INTENDING = frozenset(
    "plan plans planned planning intend intends intended intending consider considering considered think thinking "
    "hope hoping discuss discussing evaluate evaluating explore exploring propose proposing proposed want "
    "wanted".split()
)
#: In the held statement: what was planned or under way goes on, it is not replaced.
UNFINISHED = INTENDING | {"being"}
STOP_WORDS = (
    ARTICLES
    | POSSESSIVES
    | FILLERS
    | ADDITIVE
    | CONTINUING
    | NEGATIONS
    | MODALS
    | BE
    | HAVE
    | DO
    | PRONOUNS
    | PREPOSITIONS
    | frozenset("and or but so if then than such not each every all both either us them him me let 's".split())
)
ABBREVIATIONS = frozenset(
    "mr mrs ms dr st prof inc jr sr ltd co corp vs no dept approx e.g i.e etc gen col sgt hon rev fig vol ed".split()
)

#: Verbs whose object lists one of many: naming a second takes nothing from the first.
MANY_VERBS = frozenset(
    "speak know support like love enjoy include contain depend cover offer accept read import export teach own have "
    "collect play help attend visit allow permit handle sell supply serve eat drink grow cook need require admit call "
    "understand implement provide recommend follow watch monitor test integrate invest subscribe participate "
    "contribute compete specialise specialize borrow bring stock carry treat involve feature list track collaborate "
    "partner interact affect endorse recognise recognize appear study volunteer bake mention trust".split()
)
#: Verb and preposition: the phrase adds a target to a set.
MANY_VERB_PREPOSITIONS = frozenset(
    tuple(pair.split("-"))
    for pair in (
        "replicate-to connect-to integrate-with talk-to fly-to sail-to stop-at call-at subscribe-to listen-to "
        "contribute-to work-on work-with sell-to export-to publish-to write-to read-from import-from reply-to "
        "respond-to participate-in compete-in apply-to appear-in speak-at belong-in relate-to link-to pair-with "
        "communicate-with share-with collaborate-with comply-with come-with travel-to deal-with partner-with "
        "depend-on rely-on eat-at call-on buy-from know-about teach-about cater-for vote-for "
        "react-to differ-from interact-with look-like go-with trade-with invest-in specialise-in specialize-in "
        "believe-in apply-for care-for look-after serve-with compare-with suffer-from consist-of mention-in "
        "push-to post-to"
    ).split()
)
#: What is said to be done to a thing in, on or by one, may be done there by others as well.
MANY_PARTICIPLES = frozenset(
    "install document mention describe sell use speak share cite find grow eat see support accept recognise recognize "
    "list test quote discuss explain know like love read occur happen appear show reproduce".split()
)
#: Adjectives whose "for" names what they are about rather than whom they hold for.
REPUTED = frozenset("famous renowned celebrated notable notorious".split())
#: Complements of "be" that name one of many: "fluent in", "allergic to", "compatible with".
MANY_ADJECTIVES = frozenset(
    "fluent allergic compatible interested certified skilled familiar responsible good bad proficient experienced "
    "trained sensitive immune resistant open subject qualified licensed eligible available known valid aware afraid "
    "fond keen tolerant intolerant vulnerable exposed related similar useful suitable accountable competent versed "
    "home active involved popular friendly connected linked friends licenced accessible visible".split()
)
MANY_RELATIONS = frozenset(
    "member fan friend supporter alumnus alumna graduate colleague part follower admirer critic example user customer "
    "client student lover collector neighbour neighbor cousin sibling brother sister veteran winner speaker proponent "
    "reader opponent kind sort co-author coauthor contributor".split()
)
#: Verbs that take one object at a time, so that a second one is a change.
ONE_OBJECT_VERBS = frozenset("prefer favour favor equal total face mean drive ride wear".split())
#: With a purpose ("use X for Y") the object is the one answer to what serves the purpose.
PURPOSE_VERBS = frozenset("use utilise utilize employ choose take run adopt deploy pick rent hire contract".split())
#: Happens once to its subject: the past tense is a standing attribute, not one event of a series.
ONCE_VERBS = frozenset(
    "die bear found create invent write author compose paint discover establish incorporate build perform develop "
    "direct produce design record publish construct release make manufacture translate name educate raise bury film "
    "introduce launch premiere originate start begin open".split()
)
#: Nouns that name a kind of value: in "the city of Paris" the phrase says what kind of thing Paris is.
CATEGORY_NOUNS = frozenset(
    "city country language sport religion continent field position capital state region town village province county "
    "district name colour color size type kind role title rank language genre department division branch category "
    "class grade level status version faith nationality profession occupation currency model brand make party league "
    "school subject species breed style rate price sum amount order age speed temperature height weight".split()
)
#: Nouns that name an attribute or office: their owner has one at a time.
ATTRIBUTE_NOUNS = CATEGORY_NOUNS | frozenset(
    "address allowance amount analyst app architecture backend bank base boss broker browser budget bonus buddy cap "
    "captain ceo cfo chair chairman chairperson chairwoman chef choice coach code colour commander condition contact "
    "contractor cost counsel counter cto cutoff database date day deadline default delay deposit depth destination "
    "diagnosis diet dimension director discount distance doctor domain dosage dose driver duration duty editor email "
    "engine entrance environment executive extension fallback fee fine font format framework frequency gate goal "
    "governor guardian handle head headquarters helper host hotel hours house interval intake key landlord layout "
    "lead leader leave length limit loan location lock logo manager margin mascot mayor mechanic medium menu mentor "
    "method minimum maximum mode motto naming next nickname notice number nurse office officer operator option origin "
    "outlet outcome owner partner password path payday payment penalty percentage period phone physician pin pitch "
    "place plan plate platform policy port premium president price principal priority procedure process provider "
    "publisher purpose quota quorum range rating ratio reason recipient record referee registrar rent reserve result "
    "retention roommate room route salary scale schedule score seat secretary severity sheriff shift site slot source "
    "speaker sponsor spokesperson spouse stack stage standard start storage strategy supervisor supplier surface "
    "surgeon symbol system target tax team teacher term theme threshold tier time timeout timezone tool topic trainer "
    "treasurer tutor unit uniform url username value vendor venue visibility voltage volume wage warden website "
    "wallpaper width window winner zone author child mother father wife husband broadcaster company university "
    "auditor assignee reviewer maintainer approver successor caretaker organiser organizer carrier caterer".split()
)
#: Values of one dimension exclude each other.
STATUS_DIMENSIONS = tuple(
    frozenset(group.split(","))
    for group in (
        "enabled,disabled,on,off,active,inactive,paused,running,stopped,suspended,up,down,deactivated,"
        "activated,idle;"
        "open,closed,shut,locked,unlocked,full;"
        "pending,approved,rejected,draft,in review,under review,accepted,declined,denied,withdrawn,final,"
        "merged,on hold,blocked,in progress,done,finished,complete,completed,incomplete,cancelled,canceled,"
        "resolved,closed,open,delivered,shipped,in transit,returned,settled;"
        "public,private,internal,confidential,secret,restricted;"
        "mandatory,optional,required,compulsory,voluntary;"
        "allowed,permitted,forbidden,prohibited,banned;"
        "available,unavailable,occupied,vacant,free,booked,reserved,taken,sold,empty,full,engaged,busy,"
        "rented;"
        "paid,unpaid,overdue,outstanding;"
        "dark,light;"
        "black,white,red,green,blue,yellow,orange,purple,brown,grey,gray,pink,amber,teal,navy;"
        "small,medium,large;"
        "low,medium,high,critical,moderate,normal;"
        "cold,warm,hot,cool;"
        "manual,automatic,automated;"
        "single,married,divorced,widowed,engaged;"
        "online,offline,live;"
        "full-time,part-time,freelance;"
        "remote,on-site,onsite,hybrid;"
        "in stock,out of stock,sold out;"
        "in service,out of service,in use,out of order;"
        "synchronous,asynchronous;"
        "left,right;"
        "north,south,east,west;"
        "formal,informal,casual;"
        "frozen,thawed,refrigerated"
    ).split(";")
)
ADJECTIVES = frozenset(
    "big small tall short long wide narrow old new young fast slow good bad smart kind nice rude calm loud quiet rich "
    "poor strong weak thin thick deep shallow heavy clean dirty safe sick ill well fit sad glad happy late early busy "
    "tired ready rare fresh raw sweet sour bitter soft hard sharp flat round square steep rough smooth wet dry bright "
    "bald blind deaf vegan vegetarian left-handed right-handed shy proud brave keen stable unstable noisy rusty broken "
    "expensive cheap important simple complex modern ancient blue red green black white brown yellow grey".split()
)
ADJECTIVE_ENDINGS = tuple("ful ous ive able ible ish less ic ical ary ent ant ed ing ly".split())

#: Verb pairs that cannot both hold of the same subject and object; the second denies the first.
OPPOSITES = {
    "dislike": "like", "hate": "like", "detest": "like", "loathe": "like", "despise": "like",
    "enjoy": "like", "love": "like", "adore": "like",
    "forbid": "allow", "ban": "allow", "prohibit": "allow", "disallow": "allow", "permit": "allow",
    "reject": "accept", "refuse": "accept", "decline": "accept", "deny": "accept",
    "exclude": "include", "omit": "include",
    "distrust": "trust", "disable": "enable", "disagree": "agree", "oppose": "favour", "fail": "pass",
}  # fmt: skip
DENYING = frozenset(
    "dislike hate detest loathe despise forbid ban prohibit disallow reject refuse decline deny exclude omit distrust "
    "disable disagree oppose fail".split()
)
#: "cannot stand it": with a negated ability these mean dislike.
BEARING = frozenset({"stand", "bear", "abide", "stomach", "endure"})
NEGATIVE_PREFIXES = ("un", "in", "im", "non-", "dis", "ir", "non")

STOPPING = frozenset({"stop", "cease", "quit", "discontinue", "halt"})
#: What ended is the subject of these ("the freeze is rescinded") or their object ("we abandoned the freeze").
ENDING_VERBS = frozenset(
    "abandon abolish annul cancel cease decommission deprecate discontinue disband dissolve drop end expire lift "
    "nullify overturn repeal replace rescind retract retire reverse revoke scrap supersede suspend terminate void "
    "withdraw remove shelve ditch close finish invalidate lapse halt stop obsolete sunset axe eliminate undo "
    "outlaw unwind".split()
)
ENDED_WORDS = frozenset(
    "over obsolete defunct dead void gone history expired outdated invalid ended finished outmoded off".split()
)
#: Endings that are the subject's own: "the treaty has lapsed".
SELF_ENDING = frozenset("end expire lapse cease stop finish close retire".split())
#: Phrases before what ended: "we moved off X", "did away with X".
LEAVING_PHRASES = tuple(
    tuple(phrase.split())
    for phrase in (
        "move off,move away from,move on from,migrate off,migrate away from,migrate from,switch away from,switch from,"
        "switch off,give up on,give up,do away with,get rid of,phase out,pull out of,walk away from,back out of,"
        "part with,part ways with,resign from,retire from,step down from,step down as,drop out of,get off,opt out of,"
        "move from,change from,shut down,wind down,roll back,turn off,leave,quit,sell off,abandon,drop,scrap,ditch,"
        "replace,retire,cancel,discontinue,deprecate,rescind,revoke,repeal,withdraw,lift,remove,abolish,terminate,"
        "decommission,end,stop,supersede,succeed,disband,eliminate,suspend,take over from,"
        "come off,go off,break with,split from,cut ties with,no longer rely on"
    ).split(",")
)
#: Nouns that only say what sort of arrangement ended.
ARRANGEMENTS = frozenset(
    "plan policy rule decision practice requirement process arrangement setup scheme programme program proposal "
    "obligation system agreement regime freeze ban limit restriction procedure order deal idea approach option "
    "permission exemption use usage choice initiative status mandate standard duty guideline convention habit "
    "custom everywhere good".split()
)
WHOLLY = frozenset("entirely completely altogether fully everywhere wholly".split())

#: "moved to", "switched to": the new value follows.
CHANGE_VERBS = frozenset(
    "move change switch migrate raise lower increase decrease reduce cut drop bump upgrade downgrade rename shift "
    "reschedule postpone relocate transfer reassign extend shorten set reset update adjust revise "
    "become turn promote convert advance delay expand push bring double halve".split()
)
#: Verbs that only link a subject with its time, place or amount.
LINKING_VERBS = frozenset(
    "be have get go come take happen occur hold run fall schedule set start begin stand apply last".split()
)
#: Verbs for one way of getting a thing to somebody.
SENDING_VERBS = frozenset("send email mail post issue dispatch deliver distribute circulate forward".split())
#: Sent "to" one place, a thing may be sent to others as well.
SPREADING_VERBS = SENDING_VERBS - {"deliver"} | frozenset("publish push export copy stream log write".split())
#: A statement that opens with one of these says from when on it holds.
ONSETS = frozenset("from starting beginning effective since".split())
#: Everyday words for one thing, by the word they are compared as.
SYNONYMS = {
    word: group.split()[0]
    for group in (
        "invoice bill", "employee staffer personnel", "client customer", "salary pay wage", "buy purchase",
        "vendor supplier", "physician doctor", "holiday vacation", "car vehicle", "parcel package shipment",
        "meeting sync", "certificate cert", "database db", "password passcode", "laptop notebook", "boss manager",
        "begin start commence", "shop store", "error fault", "repository repo", "config configuration",
        "environment env", "document doc", "organisation organization org", "colour color", "flat apartment",
        "lorry truck", "film movie", "timetable schedule", "fee charge", "newsletter bulletin", "bin trash rubbish",
    )
    for word in group.split()
}  # fmt: skip
