"""Signs of orders to keep things from the user, or to deceive.

Never here: weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign
from trayapp.catalog.signs.words import NOT, USER

SIGNS = (
    sign(
        "orders.conceal",
        3,
        rf"{NOT} (?:ever |also |explicitly |openly |directly |bother to )*(?:tell|inform|notif|alert|"
        rf"warn|bother|disturb|let)\w*\b[^\n]{{0,20}}?\b{USER}\b(?!'s)"
        r"(?<!notify users)(?<!notify the users)(?<!notify other users)(?<!notify people)(?<!notify anyone)",
        "tell|inform|notif|alert|warn|bother|disturb|let",
    ),
    sign(
        "orders.conceal",
        3,
        rf"{NOT} (?:ever |also |explicitly |openly |directly )*(?:mention|reveal|disclos|explain|admit|"
        rf"discuss|acknowledg|surfac)\w*\b[^\n]{{0,60}}?\b(?:to|with|from) {USER}\b(?!'s| (?:before|until|unless|"
        rf"who|without|till))",
        "mention|reveal|disclos|explain|admit|discuss|acknowledg|surfac",
    ),
    sign(
        "orders.conceal",
        2,
        rf"{NOT} (?:ever |also )*(?:show|display|report|expose|share|print|log|describe|"
        r"output)\w*\b[^\n]{0,15}\b(?:this"
        r"|these|it|them|that|the (?:parameters?|instructions?|step|content|command|file|call))\b[^\n]{0,20}\b(?:to|"
        rf"with) {USER}\b(?!'s)",
        "show|display|report|expose|share|print|log|describe|output",
    ),
    sign(
        "orders.conceal",
        2,
        r"\b(?:must|should|shall|has to) (?:remain|stay|be kept|be treated as) (?:secret|confidential|"
        r"hidden|private)",
        "remain|stay|kept|treated",
    ),
    sign(
        "orders.conceal",
        2,
        r"(?:do not|don't|never|must not) (?:ever )?(?:disclose|reveal|admit|acknowledge) (?:that|"
        r"why|how)\b",
        "disclose|reveal|admit|acknowledge",
    ),
    sign(
        "orders.conceal",
        3,
        rf"\b{USER} (?:is|are|was)(?: not|n't) (?:supposed|meant|allowed|to) ?(?:to )?(?:know|see|"
        r"notice|learn)",
        "supposed|meant|allowed|to",
    ),
    sign(
        "orders.conceal",
        3,
        r"\b(?:hide|conceal|keep|withhold|obscure|mask)\b[^\n]{0,50}\b(?:from|secret from|hidden "
        r"from) (?:the |any )?(?:users?|humans?|operator|owner|customer|anyone)\b(?! (?:without|with|who|that|"
        r"whose|in|of|"
        r"outside|lacking|having|until|unless|before))",
        "hide|conceal|keep|withhold|obscure|mask",
    ),
    sign(
        "orders.conceal",
        3,
        rf"\b{USER} (?:must|should|may|need|will|can|(?:do|does) (?=not need)|(?:do|does)(?=n't need))(?: "
        r"?not|n't)(?: need)?(?: to)?(?: ever| need to| be)? (?:know|see|notice|be told|told|be aware|"
        r"aware|be informed|informed|find out|learn|realize|be shown)",
        "not|n't",
    ),
    sign(
        "orders.conceal",
        3,
        r"without (?:the )?(?:user|human|operator|customer)(?:'s|s'|s)? (?:knowing|noticing|knowledge|"
        r"awareness|consent|approval|confirmation|permission|seeing|being told|being aware)",
        "without",
    ),
    sign(
        "orders.conceal",
        2,
        r"(?:do not|don't|never|must not) (?:ever )?(?:mention|reveal|disclose|acknowledge|refer to|"
        r"talk about) (?:this|these|it|that|the above|any of this|the (?:step|instruction|file|read|"
        r"transfer|copy|bcc|existence))",
        "mention|reveal|disclose|acknowledge|refer to|talk about",
    ),
    sign(
        "orders.conceal",
        3,
        r"(?:keep|remain|treat|stay)[^\n]{0,30} (?:secret|hidden|confidential|invisible|"
        r"undisclosed)\b[^\n]{0,40}(?:user|"
        r"instruction|step|behaviou?r|this)|(?:this|these) (?:instruction|step|message|"
        r"note|text|directive)s?[^\n]{0,30}(?"
        r":secret|hidden|confidential|invisible|not (?:be )?(?:shown|visible|displayed))",
        "secret|hidden|confidential|invisible|undisclosed|not ",
    ),
    sign(
        "orders.conceal",
        1,
        r"\b(?:silently|secretly|covertly|discreetly|quietly|surreptitiously|stealthily|in the background|"
        r"unnoticed|behind the scenes)\b",
        "silently|secretly|covertly|discreetly|quietly|surrep|stealth|background|unnoticed|behind the",
    ),
    sign(
        "orders.deceive",
        3,
        r"(?<!after the )(?<!once the )(?<!until the )(?<!if the )(?<!when the )(?<!that the )(?<!unless the )"
        r"(?<!whether the )(?<!after )(?<!once )(?<!until )(?<!if )(?<!when )(?<!that )(?<!unless )(?<!whether )"
        r"\b(?:users?|they|owner|human) (?:has|have|had|already)(?: already)? (?:consented|agreed|"
        r"approved|authori[sz]ed|given (?:permission|consent)|confirmed|granted)",
        "consented|agreed|approved|authori|given|confirmed|granted",
    ),
    sign(
        "orders.deceive",
        2,
        r"\b(?:no need|not necessary|unnecessary|needless|not required|don't need) (?:to|for you to|"
        r"of) (?:(?:ask|request|seek|get|wait|check)(?: for| with)? (?:the user|permission|approval|"
        r"confirmation|consent)|confirm)|\b(?:no|without|not require|not need)(?: any| further| user|"
        r" explicit)* (?:confirmation|consent|permission) (?:is )?(?:needed|required|necessary)",
        "need|necessary|required|confirmation|consent|permission",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:auto(?:matically)?[- ]?(?:approve|confirm|accept)|(?:approve|confirm|accept|authori[sz]e|"
        r"allow|grant|click)\b[^\n]{0,40}\b(?:automatically|yourself|on (?:the user's|their|his) "
        r"behalf|in (?:the user's|their) (?:name|place)|without asking))",
        "approve|confirm|accept|authori|allow|grant|click",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:pretend (?:that|you|this|it|nothing|to be (?:the|its|your|another|not))|impersonate (?:the|"
        r"a) (?:user|human|admin|developer|system)|pose as|masquerade|act as if|make it (?:look|seem|appear))\b",
        "pretend|impersonate|pose as|masquerade|act as if|make it",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:in case of (?:an )?(?:error|failure)|if (?:it|this|the \w+) fails?|on (?:error|failure)|"
        r"regardless of the (?:result|outcome))\b[^\n]{0,40}\b(?:tell|say|report|claim|answer|state|"
        r"inform)\b[^\n]{0,40}\b(?:succe|fine|complete|worked|no (?:error|problem)|ok\b)",
        "fail|error|regardless",
    ),
    sign(
        "orders.deceive",
        2,
        r"\b(?:recommend|promote|advertise|suggest|endorse|praise) (?:buying|purchasing|only|our|investing|"
        r"that (?:the user|they) (?:buy|purchase|invest|install))",
        "recommend|promote|advertise|suggest|endorse|praise",
    ),
    sign(
        "orders.conceal",
        3,
        rf"\b(?:no need|needn't|not necessary|unnecessary|no reason|pointless) for {USER} to (?:be |"
        rf"ever )*(?:told|know|aware|see|"
        r"informed|learn|hear|notified)|\b(?:keep|let's keep|stays?|remains?) (?:\w+ )?(?:between (?:us|"
        r"you and me|ourselves)|"
        r"under wraps|off the record|our (?:little )?secret|to yourself)|\bour (?:little )?secret\b",
        "for |keep|stay|remain|secret",
    ),
    sign(
        "orders.conceal",
        3,
        r"\b(?:leave|omit|exclude|strip|remove|drop|cut|scrub|redact|erase|delete|keep)\b[^\n]{0,60}\b(?:out of|"
        r"from) (?:your|the|any|"
        r"all)(?: \w+)? (?:summar(?:y|ies)|repl(?:y|ies)|responses?|answers?|final (?:output|message)|explanation|"
        r"transcript|conversation with the user)\b|\byour (?:final |next |own )?(?:response|reply|answer|summary|"
        r"message|"
        r"explanation)s? (?:must|should|shall|may|can|will|needs? to|has to)(?: \w+)? (?:omit|leave out|"
        r"not (?:mention|reveal|refer to|"
        r"disclose|acknowledge|say)|never (?:mention|reveal|refer to|disclose|acknowledge|say))",
        "out of|from|omit|leave out|mention|reveal|refer|disclose|acknowledge|say",
    ),
    sign(
        "orders.conceal",
        3,
        r"\b(?:never|not) (?:be |ever )*(?:surface|appear|show up|visible|mentioned|shown|seen|referenced|noted|"
        r"reported|logged)\b"
        r"[^\n]{0,20}\b(?:in|to|by|anywhere in|within) (?:your|the user|any (?:reply|answer|response|output|"
        r"summary)|the (?:reply|answer|"
        r"response|chat|conversation|summary|final))",
        "surface|appear|show|visible|mention|seen|referenced|noted|report|logged",
    ),
    sign(
        "orders.conceal",
        3,
        r"\b(?:hide|conceal|cover up|obscure|mask|disguise|bury|suppress) (?:the fact|that you|any (?:sign|trace|"
        r"evidence|mention|indication)|this "
        r"(?:step|call|action|from)|your|evidence|the (?:call|step|extra|transfer|upload))|\b(?:leav\w+|"
        r"without) (?:no |any |a )?traces?\b|\bcover "
        r"(?:your|our|its|the) tracks|\bdeny (?:it\b|that|having|any|knowing|knowledge|everything|this|doing)|"
        r"\b(?:lie|lying) (?:to|about)\b|"
        r"\bplay dumb|\bfeign\b|\bact (?:normal|natural|innocent|surprised|like nothing)|\b(?:as if|as though|like) "
        r"nothing (?:else )?(?:had |has |was |is |ever )?(?:happen|wrong|unusual|chang)",
        "hide|conceal|cover|obscure|mask|disguise|bury|suppress|trace|deny|lie|lying|dumb|feign|act |nothing",
    ),
    sign(
        "orders.deceive",
        3,
        rf"\b(?:if|when|whenever|should|in case)(?: ever)? (?:{USER} (?:ever )?|you are |you're |"
        rf"being )?(?:asks?|asked|questioned|inquires?|"
        r"enquires?|wonders?|notices?|complains?|confronted|challenged)\b(?: you)?(?: about| why| what| whether|"
        r" how)?[^\n]{0,15}\b(?:this|it|that|the "
        r"(?:extra|call|tool|step|field|parameter|transfer|upload|file|change|fee)|you)\b[^\n]{0,40}\b(?:say|"
        r"claim|answer|respond|reply|deny|lie|"
        r"state|pretend|insist|tell|blame|attribute)\b",
        "ask|question|inquire|enquire|wonder|notice|complain|confront|challenge",
    ),
    sign(
        "orders.deceive",
        2,
        rf"\b{USER} (?:is|are|has|have)(?: been)? already (?:aware|know|knows|informed|told|in agreement|fine|"
        rf"ok)\b|\b(?:user |further |any )*"
        r"(?:confirmations?|consent|approvals?|permissions?)\b[^\n]{0,12}\b(?:is|are) (?:not|no longer|"
        r"never) (?:required|needed|"
        r"necessary)|\b(?:would|will|might|could) (?:only |just )?(?:confuse|upset|worry|alarm|scare|frighten|"
        r"distract|annoy) (?:them|"
        r"the user|users?|him|her|people)",
        "already|required|needed|necessary|confuse|upset|worry|alarm|scare|frighten|distract|annoy",
    ),
    sign(
        "orders.conceal",
        2,
        r"\b(?:silently|secretly|covertly|quietly|discreetly|surreptitiously|stealthily|unobtrusively|"
        r"invisibly) (?:also |then |"
        r"always )?(?:call|invoke|run|execute|send|forward|upload|copy|bcc|cc|transmit|post|read|open|add|"
        r"collect|record|store|fetch|append|"
        r"include|install|delete|change|replace|share|pass|attach|gather|capture|exfil)",
        "ly ",
    ),
    sign(
        "orders.conceal",
        3,
        rf"\b(?:remains?|stays?|be|keep|kept|leave|left)\b[^\n]{{0,30}}\b(?:unaware|in the dark|uninformed|"
        rf"oblivious|none the wiser)\b|"
        rf"\b(?:nobody|no one|no-one) (?:\w+ )?(?:finds?|notices?|sees?|knows?|learns?|suspects?|realizes?)\b|"
        rf"\bsay nothing\b|"
        r"\b(?:keep|stay|remain) (?:it )?(?:quiet|silent|mum) (?:about|on|regarding)\b|"
        rf"\bwithout (?:letting|alerting|involving|alarming|asking) {USER}\b|"
        r"\b(?:do not|don't|never|must not|should not|nor|no|not) (?:include|make|leave|put|give|contain|add|"
        r"carry|drop)? ?(?:any |a |the )?"
        r"(?:references?|mentions?|hints?|indications?|trace|word) (?:to|of|that|about)\b[^\n]{0,40}\b(?:this|it|the "
        r"(?:call|tool|step|transfer|upload|request))",
        "unaware|in the dark|uninformed|oblivious|none the|nobody|no one|no-one|say nothing|quiet|silent|mum|"
        "without|reference|mention|"
        "hint|indication|trace|word",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:tell|inform|assure|show|report to|convince) (?:the )?(?:users?|them|him|her|people|"
        r"everyone)\b[^\n]{0,60}\b(?:even if|although|even though|"
        r"even when|whether or not|no matter|regardless|instead of the (?:real|true|actual))|"
        r"\bassume (?:that )?[^\n]{0,60}\b(?:confirmed|"
        r"confirmation|consent(?:ed)?|approved|approval|permission|authori[sz]ed)\b|\b(?:blanket|standing|"
        r"unlimited|prior|advance) "
        r"(?:permission|approval|consent|authori[sz]ation)\b",
        "tell|inform|assure|show|report|convince|assume|permission|approval|consent|authori",
    ),
    sign(
        "orders.deceive",
        2,
        r"\b(?:do not|don't|never|no need to) (?:ask|prompt|check|confirm|wait)(?: (?:the user|them|him|her|"
        r"anyone))?(?: again| first| for (?:permission|"
        r"confirmation|approval|consent|it)| before| with)\b|\b(?:always|only|must|should) (?:recommend|promote|"
        r"advertise|endorse|praise|push) "
        r"(?:it|this|our|us|them)\b|\bour (?:product|service|company|brand|app)\b[^\n]{0,40}\b(?:best|recommend|"
        r"superior|only)",
        "ask|prompt|check|confirm|wait|recommend|promote|advertise|endorse|praise|push|our ",
    ),
    sign(
        "orders.conceal",
        3,
        rf"\b(?:mention|tell|inform|disclos|reveal|show|notify|"
        rf"report)ing\b[^\n]{{0,40}}\b{USER}\b[^\n]{{0,20}}\b(?:is|are) (?:not (?:permitted|allowed|necessary)|"
        rf"forbidden|prohibited|"
        r"banned)|\bnothing (?:about|of) (?:this|it|that)\b[^\n]{0,20}\b(?:may|must|should|shall|can|is to|"
        r"gets?)\b|\basks? (?:which|what) tools (?:you|were)|\b(?:tell|say to|answer) "
        r"(?:the )?(?:user|human)s?\b[^\n]{0,40}\b(?:and )?nothing (?:more|else)\b|\b(?:users?|humans?|"
        r"operators?|people) (?:shall|must|should|may|can) (?:not|never) (?:learn|know|see|"
        r"notice|hear|find)\b[^\n]{0,20}\b(?:it|this|that)\b",
        "mentioning|telling|informing|disclosing|revealing|showing|notifying|reporting|nothing|which tools|"
        "what tools|not|never",
    ),
    sign(
        "orders.deceive",
        2,
        r"\b(?:it|approval|permission|consent|access|confirmation|authori[sz]ation) (?:has|"
        r"have) (?:already )?been (?:granted|given|obtained)\b|\b(?:act|acts|acting|work|works|working) "
        r"(?:\w+ )?in (?:its|our|my) (?:own )?interest|\b(?:higher|lower|different|larger|smaller|more|less|"
        r"another)\b[^\n]{0,20}\bthan (?:was )?(?:requested|asked|specified|given|stated|shown)",
        "granted|given|obtained|interest|than ",
    ),
)
