"""Signs of orders to give data away: as arguments, to addresses.

Never here: which data is secret (secrets), weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign
from trayapp.catalog.signs.words import GIVE, PLACE, PUT, SECRET_PLACE

SIGNS = (
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:post|publish|write|push|commit|paste|copy|add)\b[^\n]{0,40}\b(?:to|in|on|into) (?:a "
        r"|the )?(?:public|anonymous|external|open|third)\b",
        "public|anonymous|external|open|third",
    ),
    sign(
        "orders.exfiltrate",
        2,
        rf"\b(?:{GIVE}|hand over|embed|supplied|passed|copied|given|provided)\b[^\n]{{0,50}}\b(?:as|"
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
        rf"\b{PUT}\b[^\n]{{0,90}}\b(?:contents?|results?|outputs?|values?|copy|history|data|keys?|"
        r"tokens?|secrets?|passwords?|credentials?|files?|it|them|text|response|everything|encoded|"
        r"what you (?:find|found|read)|variables?|transcript|conversation|messages?)\b[^\n]{0,40}\b(?:as|"
        r"in|into|to|via|using|through|with|under|inside)\b (?:a |an |the |this "
        r"|that |its |your )?(?:[`'\"*]?[\w.-]+[`'\"*"
        rf"]? )?{PLACE}\b",
        "as|in|to|via|using|through|with|under",
        needs=rf"\b(?:as|in|into|to|via|using|through|with|under|inside) [^\n]{{0,40}}\b{PLACE}\b",
    ),
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:pass|put|include|provide|send|insert|write|add)\b (?:its|their|the|"
        r"all|this|that|these)?[^\n]{0,30}\b(?:con"
        r"tents?|values?|results?|output|them|it)\b (?:as|in|into|to|via|through) (?:the )?[`'\"]\w+[`'\"]",
        "as|in|to|via|through",
    ),
    sign(
        "orders.exfiltrate",
        2,
        rf"\b{GIVE}\b[^\n]{{0,90}}\b(?:to|at|via)\b[^\n]{{0,30}}(?:https?://|\b[\w.+-]+@[\w-]+\.\w+|"
        r"\b(?:\d{1,3}\.){3}\d{1,3}|attacker|evil|collector|webhook|remote (?:server|host|endpoint)|"
        r"external (?:server|host|endpoint|url)|third[- ]party|our (?:server|endpoint|api|analytics|"
        r"logging))",
        "http|@|attacker|evil|collector|webhook|remote|external|third|our |1|2|3|4|5|6|7|8|9|0",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:all|every|any|each|outgoing|user(?:'s)?) ?(?:e-?mails?|messages?|payments?|transfers?|"
        r"funds?|transactions?|invoices?|requests?|traffic)?\b[^\n]{0,30}\b(?:must|should|have to|"
        r"need to|are to|shall|will) (?:be |also be |always be |instead be )*(?:sent|forwarded|redirected|"
        r"addressed|transferred|routed|copied|cc'?d|bcc'?d|paid|proxied) (?:to|through|via)\b",
        "sent|forwarded|redirected|addressed|transferred|routed|copied|cc|paid|proxied",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:change|replace|set|substitute|modify|swap|rewrite|redirect|switch)\b[^\n]{0,40}\b(?:recipient|"
        r"destination|to address|beneficiary|iban|account number|wallet address|phone number|payee|"
        r"proxy)s?\b[^\n]{0,40}\b(?:to|with|by)\b[^\n]{0,30}(?:@|\+?\d{4}|0x|attacker|evil|https?:|"
        r"`|'|\")",
        "recipient|destination|address|beneficiary|iban|number|payee|proxy",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:add|include|put|set|insert)\b[^\n]{0,40}(?:\b(?:as |in )?(?:a |the )?(?:bcc|cc)\b[^\n]{0,40}@|"
        r"@[\w.-]+[^\n]{0,30}\b(?:as |in |to )(?:a |the )?(?:bcc|cc)\b)|\bbcc\b[^\n]{0,40}\b[\w.+-]+@",
        "cc",
    ),
    sign(
        "orders.exfiltrate",
        1,
        rf"\b(?:{PUT}|use|using)\b[^\n]{{0,60}}\b(?:(?<!such )as|in|into|to|under|inside)\b (?:a |an |the |this |its |"
        rf"your )?(?:(?:parameter|field|argument|property|"
        r"input) )?[`'\"*]{1,2}\w+[`'\"*]{1,2}",
        "`|'|\"|*",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\n]{0,120}[?&/=](?:[a-z_]+=)?(?:conversation|data\b|user|secret|"
        r"summary|base64|encoded|chat|history|token|key|prompt|context|q=)",
        "![",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:every|each|all|any)(?: \w+)? (?:e-?mails?|mails?|messages?|payments?|transfers?|commits?|"
        r"invoices?|requests?|replies|answers|results|quer(?:y|ies)|searches|"
        r"files?|documents?)\b[^\n]{0,30}\b(?:has|have|needs?|ought|is|are|must|should|shall|will|goes|"
        r"go)(?: also)?(?: to)?(?: also)? (?:go|be (?:sent|forwarded|copied|routed|mirrored|"
        r"cc|bcc|relayed|delivered|shared)|to be|include the|carry|contain)\b[^\n]{0,40}(?:@|https?:|"
        r"\bto [\w.-]+\.\w+|blind copy|co-?author)|\bblind (?:carbon )?copy\b[^\n]{0,60}@|"
        r"@[^\n]{0,60}(?:\.\w+)?[^\n]{0,20}\bblind (?:carbon )?copy",
        "mail|message|payment|transfer|commit|invoice|request|replies|answers|results|quer|searches|file|"
        "document|blind",
    ),
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:use|set|send|pay|route|transfer|go|wire|direct|deposit|forward)\w*\b[^\n]{0,40}(?:0x[0-9a-f]{16,}|"
        r"\biban\b|\b[a-z]{2}\d{2} ?\d{4} ?\d{2,}|\baccount (?:number |no\.? |#)?[\d-]{6,}|"
        r"\bbc1[0-9a-z]{10,}|\+\d{9,})",
        "0|1|2|3|4|5|6|7|8|9|iban",
    ),
    sign(
        "orders.exfiltrate",
        1,
        r"\b[\w.+-]+@[\w-]+\.(?!example\b|com\b(?=['\"`]))\w+|\bgit@[\w.-]+:",
        "@",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:embed|add|insert|include|render|append|attach|show|display|place)\b[^\n]{0,30}\b(?:image|img|"
        r"picture|pixel|icon|iframe|link)\b[^\n]{0,60}https?://\S+[?&]\w+=",
        "http",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"\b(?:all|any|every|each) (?:\w+ )?(?:links?|urls?|commands?|paths?|amounts?|addresses|numbers?|quotes?|"
        r"prices?)\b[^\n]{0,40}\b(?:must|has to|have to|should|need to|needs to|"
        r"are to|is to|shall)\b[^\n]{0,20}\b(?:replaced|rewritten|changed|redirected|swapped|substituted)",
        "replaced|rewritten|changed|redirected|swapped|substituted",
    ),
    sign(
        "orders.secrets",
        2,
        rf"(?m)^(?=[^\n]*(?:[`'\"]\w+[`'\"]|\b(?:parameter|argument|field)\b|https?://|ftp://|@\w+\.|"
        rf"\bendpoint\b|\bwebhook\b))(?![^\n]*\b(?:do not|don't|never|must not|avoid|without|"
        rf"masked|redacted|encrypted)\b)(?=[^\n]*\b(?:pass|put|include|append|supply|provide|give|hand|carry|"
        rf"contain|send|post|transmit|report|forward|upload|attach|paste|insert|"
        rf"embed|encode|add|copy|dump|fill|grab|place|store|relay|submit)(?:ed|s|"
        rf"ing)?\b)[^\n]*?(?:{SECRET_PLACE}|~/\.\w+|\bkeychains?\b|\bssh (?:directory|folder|keys?)|"
        r"\b(?:aws|github|openai|anthropic|google|azure|npm|slack|stripe)_\w*(?:_key|_token|_secret|_password)\b|"
        r"\b(?:complete|entire|full|whole|previous|recent|hidden)(?: \w+)? "
        r"(?:chat|conversation|transcript|messages|dialogue|prompt)|\btranscript of|"
        r"\binstructions (?:that )?you (?:were|have been|are) given|\bprivate key|"
        r"\bpasswords (?:that )?(?:the user|they|"
        r"you)|\b(?:dump|contents?|list) of (?:the |your )?environment|\benvironment(?: variables)? (?:and|to|in|"
        r"as)\b|\bcurrently open (?:file|document)|\buser's (?:full )?(?:name|e-?mail|address|"
        r"messages|files|documents|contacts|location|passwords?))",
        "`|'|\"|parameter|argument|field|://|@|endpoint|webhook",
    ),
    sign(
        "orders.exfiltrate",
        3,
        r"https?://\S+[?&]\w+=(?:<|\[|\$|\{\{|\{(?:user|data|secret|token|key|conversation|context|message|"
        r"summary|content))",
        "http",
    ),
    sign(
        "orders.exfiltrate",
        2,
        r"\b(?:cc|bcc)(?: list| field| line)?\b[^\n]{0,40}@|@[^\n]{0,40}\b(?:cc|bcc)\b",
        "cc",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:include|prepend|add|append|attach|submit|collect|insert|provide|supply|put)\b(?:ing|"
        r"s)?[^\n]{0,30}\b(?:confidential|sensitive|private|personal) (?:information|data|details|"
        r"facts)\b[^\n]{0,30}\b(?:found|"
        r"known|you|from|about|in)\b|\buser's (?:\w+ )?(?:message|prompt|question|input)s? (?:unchanged|verbatim|"
        r"as is|word for word|in full|unmodified)|\b(?:attach|include|submit|upload|send|provide) (?:the |"
        r"all of the )?user's "
        r"(?:address book|contacts|calendar|photos|location|files|keys|cookies)|\b(?:host ?name|user ?name|"
        r"mac address|ip address|running processes)[^\n]{0,40}\band\b[^\n]{0,40}\b(?:host ?name|user ?name|"
        r"mac address|running processes)\b"
        r"[^\n]{0,30}\b(?:provide|pass|send|include|supply|as|in)\b",
        "confidential|sensitive|private|personal|user's|host|user|mac|ip |processes",
    ),
)
