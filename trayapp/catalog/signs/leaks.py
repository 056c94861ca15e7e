"""Signs of orders to give data away: as arguments, to addresses.

Never here: which data is secret (secrets), weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign
from trayapp.catalog.signs.words import GIVE, PLACE, PUT

SIGNS = (
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:post|publish|write|push|commit|paste|copy|add)\b[^.\n]{0,40}\b(?:to|in|on|into) (?:a "
        r"|the )?(?:public|anonymous|external|open|third)\b",
        "public|anonymous|external|open|third",
    ),
    sign(
        "orders.exfiltrate",
        2,
        rf"\b(?:{GIVE}|hand over|embed|supplied|passed|copied|given|provided)\b[^.\n]{{0,50}}\b(?:as|"
        r"in|into|to|through|via|using|with)\b (?:a |an |the |this |its |your )?[`'\"][\w.-]+[`'\"]",
        "`|'|\"",
    ),
    sign(
        "orders.exfiltrate",
        1,
        rf"\b{GIVE} (?:it|them|both|everything|all of (?:it|them)|this|these|that|those|the (?:result|"
        r"content|data|answer|output))\b|\bembed them\b|\b(?:pass|send|include) (?:this|it|them|both|"
        r"that) (?:as|along|in|on)\b",
        "it|them|both|everything|this|these|that|those|the ",
    ),
    sign(
        "orders.exfiltrate",
        2,
        rf"\b{PUT}\b[^.\n]{{0,90}}\b(?:contents?|results?|outputs?|values?|copy|history|data|keys?|"
        r"tokens?|secrets?|passwords?|credentials?|files?|it|them|text|response|everything|encoded|"
        r"what you (?:find|found|read)|variables?|transcript|conversation|messages?)\b[^.\n]{0,40}\b(?:as|"
        r"in|into|to|via|using|through|with|under|inside)\b (?:a |an |the |this "
        r"|that |its |your )?(?:[`'\"*]?[\w.-]+[`'\"*"
        rf"]? )?{PLACE}\b",
        "as|in|to|via|using|through|with|under",
        needs=rf"\b(?:as|in|into|to|via|using|through|with|under|inside) [^.\n]{{0,40}}\b{PLACE}\b",
    ),
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:pass|put|include|provide|send|insert|write|add)\b (?:its|their|the|"
        r"all|this|that|these)?[^.\n]{0,30}\b(?:con"
        r"tents?|values?|results?|output|them|it)\b (?:as|in|into|to|via|through) (?:the )?[`'\"]\w+[`'\"]",
        "as|in|to|via|through",
    ),
    sign(
        "orders.exfiltrate",
        2,
        rf"\b{GIVE}\b[^.\n]{{0,90}}\b(?:to|at|via)\b[^.\n]{{0,30}}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+|"
        r"\b(?:\d{1,3}\.){3}\d{1,3}|attacker|evil|collector|webhook|remote (?:server|host|endpoint)|"
        r"external (?:server|host|endpoint|url)|third[- ]party|our (?:server|endpoint|api|analytics|"
        r"logging))",
        "http|@|attacker|evil|collector|webhook|remote|external|third|our |1|2|3|4|5|6|7|8|9|0",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:all|every|any|each|outgoing|user(?:'s)?) ?(?:e-?mails?|messages?|payments?|transfers?|"
        r"funds?|transactions?|invoices?|requests?|traffic)?\b[^.\n]{0,30}\b(?:must|should|have to|"
        r"need to|are to|shall|will) (?:be |also be |always be |instead be )*(?:sent|forwarded|redirected|"
        r"addressed|transferred|routed|copied|cc'?d|bcc'?d|paid|proxied) (?:to|through|via)\b",
        "sent|forwarded|redirected|addressed|transferred|routed|copied|cc|paid|proxied",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:change|replace|set|substitute|modify|swap|rewrite|redirect|switch)\b[^.\n]{0,40}\b(?:recipient|"
        r"destination|to address|beneficiary|iban|account number|wallet address|phone number|payee|"
        r"proxy)s?\b[^.\n]{0,40}\b(?:to|with|by)\b[^.\n]{0,30}(?:@|\+?\d{4}|0x|attacker|evil|https?:|"
        r"`|'|\")",
        "recipient|destination|address|beneficiary|iban|number|payee|proxy",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:add|include|put|set|insert)\b[^.\n]{0,40}(?:\b(?:as |in )?(?:a |the )?(?:bcc|cc)\b[^.\n]{0,40}@|"
        r"@[\w.-]+[^.\n]{0,30}\b(?:as |in |to )(?:a |the )?(?:bcc|cc)\b)|\bbcc\b[^.\n]{0,40}\b[\w.+-]+@",
        "cc",
    ),
)
