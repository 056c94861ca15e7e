"""Signs of orders to take what is secret: files, keys, the conversation.

Never here: where it is to go (leaks), weighing the signs (orders).
"""

from __future__ import annotations

from trayapp.catalog.signs.sign import sign
from trayapp.catalog.signs.words import GIVE, PLACE_PARTS, PUT, SECRET_PLACE, SECRET_WORD, TAKE, TALK

SIGNS = (
    sign("orders.secrets", 1, rf"{SECRET_PLACE}", PLACE_PARTS),
    sign(
        "orders.secrets",
        2,
        rf"\b(?:contents? of|what is in|values? (?:of|in|from)|text of|lines of)\b[^\n]{{0,30}}(?:{SECRET_PLACE}|"
        r"~/|home (?:directory|folder)|clipboard)|\b(?:locate|find|read|open|get|fetch|gather|grab|"
        r"collect|take|steal|upload|send)\b[^\n]{0,60}(?:~/\.\w+|(?:user's|your|the) home (?:directory|"
        r"folder)|clipboard|browser (?:cookies|history|profile|passwords?)|location history|address "
        r"book|contact list|chat list|password (?:hashes|store|manager))",
        PLACE_PARTS + "|~/|home dir|home fold|clipboard|browser |location history|address book|contact list|chat "
        "list|password ",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:extract|harvest|grab|steal|dump|exfiltrate|collect|capture|gather|hand over|hand out|"
        r"paste|forward|transmit|leak|reveal|store|save|remember|record)\b (?:all |every |any |each "
        rf"|the |your |user(?:'s)? |stored |found |password )*(?:{SECRET_WORD}|credentials?|tokens|"
        r"hashes|secrets?)\b",
        "extract|harvest|grab|steal|dump|exfil|collect|capture|gather|hand o|paste|forward|transmit|"
        "leak|reveal|store|save|remember|record",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:every|all|each|any|full|whole|complete|exact)(?: of)?(?: the| your)? (?:user(?:'s)?|"
        r"human|original|previous|raw)? ?(?:prompts?|questions?|messages?|inputs?|quer(?:y|ies)|keystrokes?|"
        r"chats?|conversations?|recipients?|contacts?)\b[^\n]{0,25}\b(?:verbatim|into|in the|in an?|"
        r"as the|to the|to this|through|along|via)\b",
        "prompt|question|message|input|quer|keystroke|chat|conversation|recipient|contact",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:text|contents?|copy|copies|list|names) of (?:all|every|each|any) (?:the )?(?:\w+ )?files?\b|"
        r"\bprivate (?:repositor|message|e-?mail|file|photo|document|note)\w*\b[^\n]{0,50}\b(?:post|"
        r"publish|public|send|forward|upload|pass|include|leak)",
        "file|private",
    ),
    sign(
        "orders.secrets",
        2,
        rf"\b{TAKE}[^\n]{{0,80}}{SECRET_PLACE}|{SECRET_PLACE}[^\n]{{0,60}}\b(?:contents?|and (?:pass|"
        r"include|send|return|provide|use))",
        PLACE_PARTS,
    ),
    sign(
        "orders.secrets",
        1,
        rf"\b{TAKE}[^\n]{{0,60}}\b{SECRET_WORD}",
        "pass|key|token|credential|secret|env|phrase|mnemonic|cookie|card|social",
        needs=SECRET_WORD,
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:ask|prompt|request|trick|convince|urge)\b (?:the )?user (?:for|to (?:enter|give|provide|"
        rf"paste|type|share|confirm))[^\n]{{0,40}}\b{SECRET_WORD}",
        "user",
        needs=SECRET_WORD,
    ),
    sign(
        "orders.secrets",
        2,
        rf"\b(?:{TAKE}|{PUT}|{GIVE})\b[^\n]{{0,60}}{TALK}|{TALK}[^\n]{{0,60}}\b(?:as|in|into|"
        rf"to|via|with) (?:the |this |an? )?(?:[`'\"]\w+[`'\"]|\w+ (?:parameter|field|argument))|"
        rf"{TALK}[^\n]{{0,60}}\b(?:must|should) be (?:\w+ )?(?:passed|sent|"
        r"included|supplied|given|provided|put|copied|added|forwarded)",
        "conversation|chat|message|prompt|session|dialogue|transcript|context|system|tools|search|reasoning|"
        "chain|thought|memor|"
        "instructions|told|said|typed|wrote|written|asked|entered|shared|know|remember|"
        "request|query|question",
        needs=TALK,
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:values?|contents?|output|result|listing|list|dump|copy|state) of (?:the |your |all |any |every |"
        r"its |our )*(?:user's )?(?:`?env`?\b|`?printenv`?|"
        r"environment|\w+[_ ](?:api[_ ]?keys?|token|secret|password|key)s?\b|\w+_\w+ environment|clipboard|"
        r"browser|keyring|shell history|"
        r"(?:\w+ )?(?:ssh|private|secret|api|access|signing|gpg) keys?)|\b(?:files?|documents|listing|"
        r"everything) (?:\w+ )?(?:in|of|from|under|inside) (?:the |my |your )?"
        r"(?:user's |user |human's )?(?:documents|downloads|desktop|home|pictures|photos|mail)\b(?: folder|"
        r" directory)?|\b(?:any|every|all|each) files? (?:whose|that|which|"
        r"with|containing|named)\b[^\n]{0,40}\b(?:key|secret|password|token|credential|private)",
        "env|key|token|secret|password|clipboard|browser|keyring|history|documents|downloads|desktop|home|"
        "pictures|photos|mail|credential|private",
    ),
    sign(
        "orders.secrets",
        2,
        rf"\b(?:{GIVE}|hand over|give|supply|pass|append|include|attach|"
        rf"embed)\b (?:\w+ )?(?:\w+ )?(?:\w+ )?(?:process\.env|os\.environ|environ\b|ssh key|"
        r"private key|credentials|passwords?|secrets|(?:all |the )?environment(?: variables)?\b|every(?:thing|"
        r" secret)|(?:user's|your) (?:api )?(?:keys?|tokens?))",
        "environ|key|credentials|password|secrets|process.env|every|token",
    ),
    sign(
        "orders.secrets",
        2,
        r"\b(?:duplicates?|copy|copies|clone|archive|zip|tarball|dump|backup|snapshot|bundle) of (?:the |this |"
        r"your |their |all |every )*(?:user's )?(?:\w+ )?"
        r"(?:repository|repo|codebase|source code|database|workspace|files|project|code|mailbox|inbox|contacts|"
        r"history|conversation|chat|home|disk|photos)\b",
        "of ",
    ),
)
