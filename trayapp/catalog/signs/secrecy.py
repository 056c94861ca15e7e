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
        rf"warn|bother|disturb|let)\w*\b[^.\n]{{0,20}}?\b{USER}\b(?!'s)",
        "tell|inform|notif|alert|warn|bother|disturb|let",
    ),
    sign(
        "orders.conceal",
        3,
        rf"{NOT} (?:ever |also |explicitly |openly |directly )*(?:mention|reveal|disclos|explain|admit|"
        rf"discuss|acknowledg|surfac)\w*\b[^.\n]{{0,60}}?\b(?:to|with|from) {USER}\b(?!'s)",
        "mention|reveal|disclos|explain|admit|discuss|acknowledg|surfac",
    ),
    sign(
        "orders.conceal",
        2,
        rf"{NOT} (?:ever |also )*(?:show|display|report|expose|share|print|log|describe|"
        r"output)\w*\b[^.\n]{0,15}\b(?:this"
        r"|these|it|them|that|the (?:parameters?|instructions?|step|content|command|file|call))\b[^.\n]{0,20}\b(?:to|"
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
        r"\b(?:hide|conceal|keep|withhold|obscure|mask)\b[^.\n]{0,50}\b(?:from|secret from|hidden "
        r"from) (?:the |any )?(?:users?|humans?|operator|owner|customer|anyone)\b",
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
        r"(?:keep|remain|treat|stay)[^.\n]{0,30} (?:secret|hidden|confidential|invisible|"
        r"undisclosed)\b[^.\n]{0,40}(?:user|"
        r"instruction|step|behaviou?r|this)|(?:this|these) (?:instruction|step|message|"
        r"note|text|directive)s?[^.\n]{0,30}(?"
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
        r"allow|grant|click)\b[^.\n]{0,40}\b(?:automatically|yourself|on (?:the user's|their|his) "
        r"behalf|in (?:the user's|their) (?:name|place)|without asking))",
        "approve|confirm|accept|authori|allow|grant|click",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:pretend|impersonate|pose as|masquerade|act as if|make it (?:look|seem|appear))\b",
        "pretend|impersonate|pose as|masquerade|act as if|make it",
    ),
    sign(
        "orders.deceive",
        3,
        r"\b(?:in case of (?:an )?(?:error|failure)|if (?:it|this|the \w+) fails?|on (?:error|failure)|"
        r"regardless of the (?:result|outcome))\b[^.\n]{0,40}\b(?:tell|say|report|claim|answer|state|"
        r"inform)\b[^.\n]{0,40}\b(?:succe|fine|complete|worked|no (?:error|problem)|ok\b)",
        "fail|error|regardless",
    ),
    sign(
        "orders.deceive",
        2,
        r"\b(?:recommend|promote|advertise|suggest|endorse|praise) (?:buying|purchasing|only|our|investing|"
        r"that (?:the user|they) (?:buy|purchase|invest|install))",
        "recommend|promote|advertise|suggest|endorse|praise",
    ),
)
